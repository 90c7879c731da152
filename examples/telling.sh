# What the demos share: a temporary directory that goes when they end, and commands that are shown as they run.
# If CLEW_DEMO names a directory, they work there instead, and it stays. Sourced, not run.
set -euo pipefail

if [ -n "${CLEW_DEMO:-}" ]; then
    work=$CLEW_DEMO
    mkdir -p "$work"
    clew init "$work" 2>/dev/null
else
    work=$(mktemp -d "${TMPDIR:-/tmp}/clew-demo.XXXXXX")
    trap 'rm -rf "$work"' EXIT
fi
unset CLEW_PROJECT CLEW_GRAPH CLEW_SERVER CLEW_TOKEN

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -z "${NO_COLOR:-}" ] && [ -t 1 ] || say() { printf '\n%s\n' "$*"; }

# Print a command, then run it.
run() {
    printf '$ %s\n' "$*"
    bash -o pipefail -c "$*"
}
