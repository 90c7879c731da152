#!/bin/sh
# Raw readings to a judged model, in four steps. It knows nothing of Clew.
set -e
cd "$(dirname "$0")"
python3 prepare.py data/raw.csv data/clean.csv
python3 split.py data/clean.csv data/train.csv data/test.csv
python3 train.py data/train.csv settings.json model.pkl
python3 evaluate.py model.pkl data/test.csv metrics.json
