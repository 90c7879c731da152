"""Record, trace and repeat commands in this directory, and write what Clew says to summary.json.

    python3 workload.py [CLEW]

It runs on x86-64 and on aarch64, so the summary leaves out what differs between any two machines.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

CLEW = sys.argv[1] if len(sys.argv) > 1 else "clew"
HERE = os.getcwd() + "/"
# Waits, and reads the clock and random numbers in every way that can be pinned.
PINNED = """
import os, random, select, time, threading
print(time.time(), os.urandom(4), random.random(), open("/dev/urandom", "rb").read(4))
time.sleep(0.1)
select.select([], [], [], 0.1)
threading.Event().wait(0.1)
print(int(time.time()), hash("text"), time.gmtime())
"""


def clew(*words, status=0):
    ended = subprocess.run([CLEW, *words], capture_output=True, text=True)
    if ended.returncode != status:
        sys.exit(f"clew {' '.join(words)} ended with {ended.returncode}:\n{ended.stderr}")
    return ended.stdout


def document(*words):
    return json.loads(clew(*words, "--json"))


def execution(name):
    shown = document("show", name, "--detail")
    commands = {process["id"]: " ".join(process["command"]) for process in shown["tree"]}
    own = [file for file in shown["files"] if file["path"].startswith(HERE)]
    return {
        "processes": sorted(
            [commands[p["id"]], commands.get(p["parent"], ""), p["status"], p["signal"]]
            for p in shown["tree"]
        ),
        "files": {
            file["path"].removeprefix(HERE): [
                file[key] for key in ("role", "class", "read", "written", "digest", "versions")
            ]
            for file in own
        },
        "gaps": shown["gaps"],
        "status": shown["status"],
    }


def lineage(path):
    found = document("trace", path)
    names = {node["id"]: node["label"].removeprefix(HERE) for node in found["nodes"]}
    return sorted([names[e["from"]], names[e["to"]], e["kind"]] for e in found["edges"])


def repetition(*words):
    repeated = document("repeat", *words)
    reused = sorted(" ".join(each["command"]) for each in repeated["reused"])
    return [repeated["verdict"], repeated["differences"], reused]


def package_architecture():
    shown = document("show", "e1", "--detail")
    dash = next(file for file in shown["files"] if file["path"].endswith("/dash"))
    return dash["package"]["arch"]


Path("in").write_text("b\na\nc\n")
Path("rewritten").write_text("some text\n")
Path("appended").write_text("some text\n")
Path("script").write_text("tr b c < in > replaced\n")
Path("script").chmod(0o755)
clew("init")
clew("exec", "--", "sh", "-c", "sort in > mid; tr a b < mid > out")
clew("exec", "--", "python3", "steps.py")
clew("exec", "--pin", "clock,random", "--", "python3", "-c", PINNED)
clew("exec", "--", "sh", "-c", "exit 3", status=3)
clew("exec", "--", "seq", "100000")  # more than 64 KiB, so that content is cut into chunks
clew("exec", "--", "./script")  # names no interpreter: the shell runs it
summary = {
    "architecture": document("show", "e1")["environment"]["cpu"]["architecture"],
    "package architecture": package_architecture(),
    "executions": [execution(f"e{n}") for n in range(1, 7)],
    "lineage": [lineage(path) for path in ("out", "dir/here", "upper", "copied")],
    "rewritten": clew("cat", "e2:rewritten@1"),
    "numbers": len(clew("cat", "e5:stdout")),
    "repetitions": [
        *(repetition(name) for name in ("e1", "e2", "e3", "e5")),
        repetition("e1", "--incremental"),
    ],
    "check": clew("fsck"),
}
Path("summary.json").write_text(json.dumps(summary))
