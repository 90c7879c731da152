"""The command keeps its input, output, terminal and signals; what passes is kept beside."""

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.driver import CLEW, Project
from tests.local.programs.compiling import compiled, go_program


def test_all_three_are_kept(project: Project) -> None:
    ran = project.sh("tr a-z A-Z; echo err >&2", input=b"word\n")
    assert (ran.out, ran.err) == (b"WORD\n", b"err\n")
    assert ran.stream("stdin") == b"word\n"
    assert ran.stream("stdout") == b"WORD\n"
    assert ran.stream("stderr") == b"err\n"


def test_one_stream_stays_in_order(project: Project) -> None:
    ran = project.command(
        *("exec", "--", "sh", "-c", "for n in 1 2 3 4 5; do echo out$n; echo err$n >&2; done"),
        capture_output=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    lines = ran.stdout.decode().splitlines()[:10]
    assert lines == [f"{kind}{n}" for n in range(1, 6) for kind in ("out", "err")]
    assert project.command("cat", "e1:stdout").stdout.decode().splitlines() == lines


def test_a_command_that_does_not_read_leaves_the_input(project: Project) -> None:
    loop = f"printf 'a\\nb\\nc\\n' | while read x; do {' '.join(CLEW)} exec -- true; echo $x; done"
    ran = subprocess.run(
        ["sh", "-c", loop], cwd=project.folder, env=project.environment, capture_output=True
    )
    assert ran.stdout == b"a\nb\nc\n"


READERS = {
    "another thread": "import threading, sys\n"
    "t = threading.Thread(target=lambda: print(sys.stdin.read()))\nt.start()\nt.join()",
    "another descriptor": "import os\nn = os.dup(0)\nos.close(0)\nprint(os.read(n, 9).decode())",
    "a poll": "import select, os\nselect.poll().register(0)\n"
    "p = select.poll(); p.register(0, 1); p.poll(); print(os.read(0, 9).decode())",
    "a splice": "import os\nr, w = os.pipe()\nos.splice(0, w, 9)\nprint(os.read(r, 9).decode())",
    "a child": "import subprocess, sys\nsubprocess.run(['cat'])",
    "the terminal's way": "print(input())",
}


@pytest.mark.parametrize("code", READERS.values(), ids=READERS.keys())
def test_input_reaches_the_process_that_reads(project: Project, code: str) -> None:
    ran = project.exec(sys.executable, "-c", code, input=b"word\n", timeout=60)
    assert ran.out.strip() == b"word"
    assert ran.stream("stdin") == b"word\n"


@pytest.mark.parametrize("flags", [("-m32",), ("-static",)], ids=str)
def test_programs_of_any_kind_get_the_input(
    project: Project, built: Path, flags: tuple[str, ...]
) -> None:
    (project / "f").write_text("x\n")
    ran = project.exec(compiled("opens", built, *flags), "twice", "f", input=b".", timeout=60)
    assert ran.out == b"x\nx\n"


def test_a_go_program_gets_the_input(project: Project, built: Path) -> None:
    ran = project.exec(go_program("echoes", built), input=b"word\n", timeout=60)
    assert ran.out == b"word\n"


def test_output_beyond_the_limit_keeps_its_digest(project: Project) -> None:
    config = project / ".clew/config.toml"
    limited, changed = re.subn(r"stream_limit = \d+", "stream_limit = 1000", config.read_text())
    assert changed == 1
    config.write_text(limited)
    ran = project.sh("yes word | head -c 100000")
    assert ran.out == b"word\n" * 20000
    kept = next(file for file in ran.show["files"] if file["path"].endswith("stdout"))
    assert (kept["size"], kept["stored"]) == (100000, False)
    assert kept["digest"].startswith("blake3:")


def test_secrets_are_masked_in_what_is_kept(project: Project) -> None:
    secret = "s3cr3t-value-0123456789"
    project.environment["MY_API_TOKEN"] = secret
    ran = project.sh(f'echo "$MY_API_TOKEN"; echo "$MY_API_TOKEN" >&2; : {secret}')
    assert ran.out == f"{secret}\n".encode()
    assert ran.err == f"{secret}\n".encode()
    assert secret.encode() not in (ran.stream("stdout") or b"") + (ran.stream("stderr") or b"")
    assert secret not in str(ran.show)


def test_a_terminal_stays_a_terminal(project: Project) -> None:
    master, slave = pty.openpty()
    running = project.start_exec(
        *("sh", "-c", "[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && read x && echo got $x"),
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    os.write(master, b"word\n")
    seen = b""
    while True:
        try:
            data = os.read(master, 4096)
        except OSError:
            break
        seen += data
    assert running.wait(60) == 0
    os.close(master)
    assert b"got word\r\n" in seen
    assert b"got word" in project.command("cat", "e1:stdout").stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command(project: Project, number: signal.Signals) -> None:
    name = number.name.removeprefix("SIG")
    script = f"trap 'echo caught; exit 9' {name}; echo ready; while :; do sleep 0.05; done"
    ignored = signal.signal(number, signal.SIG_DFL)  # as where tests run in the background
    try:
        running = project.start_exec("bash", "-c", script)
    finally:
        signal.signal(number, ignored)
    assert running.stdout is not None
    assert running.stdout.readline() == b"ready\n"
    running.send_signal(number)
    ran = project.finish_exec(running)
    assert (ran.status, ran.out) == (9, b"caught\n")


def test_an_uncaught_signal_ends_the_command(project: Project) -> None:
    running = project.start_exec("sh", "-c", "echo ready; exec sleep 60")
    assert running.stdout is not None
    assert running.stdout.readline() == b"ready\n"
    running.send_signal(signal.SIGTERM)
    ran = project.finish_exec(running)
    assert ran.status == 128 + signal.SIGTERM
    assert ran.show["signal"] == signal.SIGTERM


def _signals(status: str) -> list[tuple[str, int]]:
    """Without the two that the C library keeps to itself."""
    found = re.findall(r"^(SigBlk|SigIgn|SigCgt):\s*(\w+)", status, re.M)
    return [(name, int(bits, 16) & ~(3 << 31)) for name, bits in found]


def test_the_signal_state_is_as_it_was(project: Project) -> None:
    command = ["cat", "/proc/self/status"]
    alone = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert _signals(project.exec(*command).out.decode()) == _signals(alone)


def test_a_closed_output_pipe(project: Project) -> None:
    line = f"{' '.join(CLEW)} exec -- yes | head -n 1"
    ran = subprocess.run(
        ["sh", "-c", line],
        cwd=project.folder,
        env=project.environment,
        capture_output=True,
        timeout=60,
    )
    assert ran.stdout == b"y\n"
    shown = project.exec("true")
    assert shown.status == 0


def test_descriptors_are_as_they_were(project: Project) -> None:
    code = "import os; print(sorted(n for n in os.listdir('/proc/self/fd')))"
    alone = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, stdin=subprocess.DEVNULL
    )
    assert project.exec(sys.executable, "-c", code).out == alone.stdout
