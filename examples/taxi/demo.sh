#!/usr/bin/env bash
# Run the taxi pipeline, change its learning rate, run it again, and trace the metric to the raw rows. It works
# in a temporary directory and leaves nothing behind. The first argument is the file of trips; without one it is downloaded.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
trips=${1:-}
. "$here/../telling.sh"

if [ -n "$trips" ]; then
    cp "$trips" "$work/trips.csv"
else
    python3 "$here/download.py" "$work/trips.csv"
fi
cp "$here/pipeline.py" "$work/"
cd "$work"

say "1. Taxi trips, and a pipeline written with the stock Kubeflow SDK, to learn what a passenger tips."
run "wc -l trips.csv"
run "sed -n '/^@dsl.pipeline/,\$p' pipeline.py"

say "2. Run it. Tasks are processes of this machine; those that do not need each other run side by side."
run clew pipeline run pipeline.py

say "3. How good are the predictions? The errors are in dollars."
run clew cat r1/evaluate:scores

say "4. Learn more slowly. What the learning rate does not touch is reused; each line says why."
run clew pipeline run pipeline.py -p learning_rate=0.1
run clew cat r2/evaluate:scores

say "5. Where does that number come from? Task by task, back to trips.csv at the ends of the tree."
run clew pipeline show r2
run clew trace r2/evaluate:scores

fetched=$(clew pipeline show r2 --json | python3 -c '
import json, sys
print(next(task["execution"] for task in json.load(sys.stdin)["tasks"] if task["name"] == "fetch"))')
say "6. These are the raw rows as the task fetch read them ($fetched), whatever happens to the file now."
run "rm trips.csv"
run "clew cat $fetched:trips.csv@input | sed -n 1,3p"
