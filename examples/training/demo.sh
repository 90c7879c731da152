#!/usr/bin/env bash
# Record the training workflow beside this script, trace the model back to its data, lose the data, and
# get it back. It works on a copy in a temporary directory and leaves nothing behind but, if a first argument
# names a directory for it, the lineage page.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
pages=${1:-}
. "$here/../telling.sh"

for file in run.sh prepare.py split.py train.py evaluate.py settings.json data; do
    cp -R "$here/$file" "$work/"
done
cd "$work"

say "1. A directory with raw data and four steps that turn it into a model. Make it a project."
run ls
run clew init

say "2. Run the workflow as usual, with 'clew exec --' before it."
run clew exec --name first -- ./run.sh

say "3. What ran? Nobody told Clew about the steps: it saw them."
run clew show e1

say "4. What did it read and write? Here is what is the project's own; the rest is Python and its packages."
run 'clew show e1 --class data --class configuration --class source | cut -f 1-5'

say "5. Where does the model come from?"
run clew trace model.pkl

if [ -n "$pages" ]; then
    say "The same as a page."
    run "clew trace model.pkl --html -o '$pages/model.html'"
fi

say "6. Disaster: somebody overwrites the raw data."
cp data/raw.csv "$work/kept-aside-to-compare.csv"
run "grep -v P07 kept-aside-to-compare.csv > data/raw.csv"
run clew trace data/raw.csv

say "7. The version that the model was made from is still in the record. Get it back."
run clew restore e1:data/raw.csv@input --yes
run cmp data/raw.csv kept-aside-to-compare.csv

say "The restored data is, byte for byte, what the model was trained on."
