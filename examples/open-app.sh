#!/usr/bin/env bash
# Show what a demo recorded in the web app. On a terminal the app opens and runs until Ctrl-C; otherwise its
# command and address are printed, and nothing is left running. The first argument is the demo's directory.
set -euo pipefail
cd "$1"

printf '\nWhat this demo recorded, in the web app: runs, task graphs, lineage. You can repeat every run there.\n'
printf '$ cd %s && clew up\n' "$PWD"
if [ -t 0 ] && [ -t 1 ]; then
    exec clew up
fi
printf 'Nothing is running now. This command starts the app, at http://127.0.0.1:8100/?token=%s\n' "$(cat .clew/token)"
