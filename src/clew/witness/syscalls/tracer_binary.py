"""Finding clew-trace, and the words it is called with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from clew.errors import RecordingFailed

FOLDER = Path(__file__).resolve().parents[2] / "_native"
TRACER = FOLDER / "clew-trace"
LIBRARY = FOLDER / "libclew-inject.so"
SANDBOX = FOLDER / "clew-sandbox"


def require() -> None:
    """Say clearly when the witness was never built."""
    if os.access(TRACER, os.X_OK):
        return
    try:
        why = (FOLDER / "not-built.txt").read_text().strip()
    except OSError:
        why = "it is not part of this installation"
    raise RecordingFailed(
        f"the system-call witness is missing: {why}",
        hint="install a C compiler (Debian: apt-get install gcc libc6-dev), then clew again",
    )


def tracer_command(
    command: Sequence[str],
    *,
    tracer: str,
    library: str,
    trace: str,
    spool: str | None,
    notify: int,
    exclude: Iterable[str],
    starter: int | None = None,
    session: bool = False,
    environment: str | None = None,
    opened: Mapping[int, tuple[int, str]] | None = None,
    reading: int | None = None,
    ask: int | None = None,
    pin_clock: int | None = None,
    pin_random: str | None = None,
    serial: bool = False,
    prompt: bool = False,
    isolated: bool = False,
) -> list[str]:
    """`starter`: with whom the tracer ends; `session`: the command gets a session of its own, with
    its input as its terminal; `environment`: a file with the command's variables; `opened`: files
    that it has open from the beginning, as (flags, path) by descriptor; `reading`: memory that
    tells how much of the output was read; `ask`: a socket to whoever knows what need not run;
    `pin_clock`: when its wall clock begins; `pin_random`: the seed of its randomness; `serial`: one
    process after the other; `prompt`: what a child of it did is written as soon as it ends;
    `isolated`: the command is not trusted and must not reach the tracer.
    """
    words = [tracer, "--out", trace, "--notify", str(notify), "--library", library]
    if starter is not None:
        words += ["--starter", str(starter)]
    if spool is not None:
        words += ["--spool", spool]
    if session:
        words += ["--session", "1"]
    if environment is not None:
        words += ["--environment", environment]
    for descriptor, (flags, path) in (opened or {}).items():
        words += ["--open", f"{descriptor}:{flags}:{path}"]
    given = {
        "--pin-clock": pin_clock,
        "--pin-random": pin_random,
        "--serial": 1 if serial else None,
        "--prompt": 1 if prompt else None,
        "--isolated": 1 if isolated else None,
        "--streams": reading,
        "--ask": ask,
    }
    for name, value in given.items():
        words += [] if value is None else [name, str(value)]
    for glob in exclude:
        words += ["--exclude", glob]
    return [*words, "--", *command]


def outer_execution() -> str | None:
    """The uid of the execution this process is already recorded by; its spool folder names it."""
    try:
        with open("/proc/self/status") as status:
            tracer = next(line.split()[1] for line in status if line.startswith("TracerPid:"))
        with open(f"/proc/{tracer}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except (OSError, StopIteration):
        return None
    if tracer == "0" or os.path.basename(words[0]) != b"clew-trace" or b"--out" not in words:
        return None
    return os.fsdecode(os.path.basename(os.path.dirname(words[words.index(b"--out") + 1])))
