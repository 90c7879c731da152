"""Pinned: the same time is told and the same numbers are drawn again, by whatever program; unpinned
runs are not even slowed down."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.local.programs.compiling import compiled, go_program
from tests.local.tracer import PINNED, run_traced

PYTHON = {
    "random": "import random; print(random.random(), random.sample(range(10**6), 3))",
    "urandom": "import os, secrets; print(os.urandom(8), secrets.token_hex(4))",
    "time": "import time, datetime; print(time.time_ns(), datetime.datetime.now())",
    "uuid": "import uuid; print(uuid.uuid4())",
    "hash": "print(list({'one', 'two', 'three', 'four', 'five', 'six', 'seven'}), hash('x'))",
    "addresses": "print(object())",
    "temporary": "import tempfile; print(tempfile.mktemp())",
    "numpy": "import numpy; print(numpy.random.rand(3), numpy.random.default_rng().random())",
    "device": "print(open('/dev/random', 'rb', buffering=0).read(8))",
}
SHELL = {
    "date": "date +%s.%N",
    "device": "head -c 8 /dev/urandom | xxd",
    "handed-on": "xxd -l 8 < /dev/urandom",
    "linked": "ln -s /dev/urandom here; xxd -l 8 here; rm here",
    "large": "dd if=/dev/urandom bs=1M count=3 status=none | sha256sum",
    "shuf": "shuf -i 1-1000000 -n 3",
    "mktemp": "mktemp -u",
    "awk": "awk 'BEGIN { srand(); print rand(), srand() }'",
    "perl": 'perl -e \'print rand(), " ", time, "\\n"\'',
    "bash": "bash -c 'echo $SRANDOM $EPOCHREALTIME'",
}
COMMANDS = {
    **{f"python-{name}": [sys.executable, "-c", code] for name, code in PYTHON.items()},
    **{f"sh-{name}": ["sh", "-c", line] for name, line in SHELL.items()},
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_pinned_program_sees_the_same_values(tmp_path: Path, command: list[str]) -> None:
    told = run_traced(tmp_path, command, PINNED)
    assert told
    assert run_traced(tmp_path, command, PINNED) == told
    assert run_traced(tmp_path, command) != told


FLAGS = [
    (),
    ("-static",),
    ("-m32",),
    ("-m32", "-static"),
    ("-m32", "-D_TIME_BITS=64", "-D_FILE_OFFSET_BITS=64"),
]


@pytest.mark.parametrize("flags", FLAGS, ids=str)
def test_every_way_to_ask(tmp_path: Path, built: Path, flags: tuple[str, ...]) -> None:
    program = compiled("pinned", built, *flags)
    told = run_traced(tmp_path, [program], PINNED)
    assert run_traced(tmp_path, [program], PINNED) == told
    said = dict(line.split(" ", 1) for line in told.splitlines())
    assert said["realtime"] == "1000000000 250001000"
    assert said["coarse"] == "1000000000 250002000"
    assert said["tai"] == "1000000000 250003000"
    assert said["gettimeofday"] == "1000000000 250004"
    assert said["time"] == "1000000000 0"
    assert said["slept"] == "1 past 1"
    assert said["waited"] == "1 error 110"
    drawn = {line for line in told.splitlines() if line.split()[0] in _DRAWN}
    assert len(drawn) == 11
    assert not drawn & set(run_traced(tmp_path, [program]).splitlines())
    assert not drawn & set(
        run_traced(tmp_path, [program], replace(PINNED, random="0" * 32)).split("\n")
    )


_DRAWN = {"getrandom", "at-random", "read", "readv", "pread", "thread"}


def test_a_go_program(tmp_path: Path, built: Path) -> None:
    program = go_program("pinned", built)
    told = run_traced(tmp_path, [program], PINNED)
    assert run_traced(tmp_path, [program], PINNED) == told
    assert told.split()[1].startswith("1000000000")


def test_pins_of_clock_and_random_are_independent(tmp_path: Path) -> None:
    line = ["sh", "-c", "date +%s.%N; shuf -i 1-1000000000 -n 1"]
    when, drawn = run_traced(tmp_path, line, PINNED).splitlines()
    clock = run_traced(tmp_path, line, replace(PINNED, random=None)).splitlines()
    chance = run_traced(tmp_path, line, replace(PINNED, clock=None)).splitlines()
    assert clock[0] == when and clock[1] != drawn
    assert chance[1] == drawn and chance[0] != when


def test_concurrent_processes_draw_their_own_numbers(tmp_path: Path) -> None:
    line = "for n in 1 2 3 4 5 6; do (shuf -i 1-1000000000 -n 1 > $n) & done; wait; cat 1 2 3 4 5 6"
    told = run_traced(tmp_path, ["sh", "-c", line], PINNED)
    assert len(set(told.splitlines())) == 6
    assert run_traced(tmp_path, ["sh", "-c", line], PINNED) == told


def test_a_thread_reads_what_another_opened(tmp_path: Path) -> None:
    code = """
import os, threading
ready, told = os.pipe(), []
def reads():
    told.append(os.read(int(os.read(ready[0], 9)), 8).hex())
thread = threading.Thread(target=reads)
thread.start()
device = os.open("/dev/urandom", os.O_RDONLY)
os.write(ready[1], b"%d" % device)
thread.join()
os.close(device)
print(told, os.urandom(8).hex())
"""
    command = [sys.executable, "-c", code]
    assert run_traced(tmp_path, command, PINNED) == run_traced(tmp_path, command, PINNED)


WAITS = {
    "sleep": "time.sleep(0.1)",
    "select": "select.select([], [], [], 0.1)",
    "poll": "select.poll().poll(100)",
    "lock": "threading.Event().wait(0.1)",
    "child": "subprocess.run(['sleep', '0.1'])",
    "nothing": "pass",
}


@pytest.mark.parametrize("how", WAITS)
def test_waiting_for_a_pinned_time_ends(tmp_path: Path, how: str) -> None:
    far = 0.05 if how == "nothing" else 0.5
    code = f"""
import select, subprocess, threading, time
began, before, n = time.time(), time.time(), 0
while time.time() < began + {far}:
    {WAITS[how]}
    assert time.time() > before
    before, n = time.time(), n + 1
print(n, time.time())
"""
    told = run_traced(tmp_path, [sys.executable, "-c", code], PINNED)
    rounds, now = told.split()
    assert how == "nothing" or rounds in ("5", "4")  # what asking takes may save one
    assert 10**9 + 0.25 + far <= float(now) < 10**9 + 1.5


def test_a_shell_that_waits_for_a_time(tmp_path: Path) -> None:
    line = "end=$(($(date +%s) + 1)); while [ $(date +%s) -lt $end ]; do sleep 0.2; done; date +%s"
    assert run_traced(tmp_path, ["sh", "-c", line], PINNED) == "1000000001\n"


@pytest.mark.parametrize("pinned", [False, True])
def test_only_pinned_calls_stop(tmp_path: Path, pinned: bool) -> None:
    """The tracer sleeps until something stops: how often it was woken is known to the kernel."""
    code = """
import ctypes, re
status = open("/proc/self/status").read()
tracer = re.search(r"TracerPid:\\s+(\\d+)", status)[1]
def woken():
    status = open(f"/proc/{tracer}/status").read()
    return int(re.search(r"^voluntary_ctxt_switches:\\s+(\\d+)", status, re.M)[1])
call, room = ctypes.CDLL(None).syscall, ctypes.create_string_buffer(64)
before = woken()
for _ in range(1000):
    call(228, 0, room)      # clock_gettime
    call(96, room, None)    # gettimeofday
    call(318, room, 8, 0)   # getrandom
    call(7, None, 0, 0)     # poll, without a timeout
    call(228, 1, room)      # clock_gettime of another clock
print(woken() - before)
"""
    woken = int(run_traced(tmp_path, [sys.executable, "-c", code], *([PINNED] if pinned else [])))
    assert woken > 1000 if pinned else woken < 200
