# What the demos share: a temporary directory that goes when they end, and commands that are shown as they run.
# Sourced, not run.
set -euo pipefail

work=$(mktemp -d "${TMPDIR:-/tmp}/clew-demo.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset CLEW_PROJECT CLEW_GRAPH CLEW_SERVER CLEW_TOKEN

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -z "${NO_COLOR:-}" ] && [ -t 1 ] || say() { printf '\n%s\n' "$*"; }

# Print a command, then run it.
run() {
    printf '$ %s\n' "$*"
    bash -o pipefail -c "$*"
}
