"""Finding clew-trace, and the words it is called with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from clew.errors import RecordingFailed

FOLDER = Path(__file__).resolve().parent.parent / "_native"
TRACER = FOLDER / "clew-trace"
LIBRARY = FOLDER / "libclew-inject.so"


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
    trace: Path,
    spool: Path | None,
    notify: int,
    exclude: Iterable[str],
    session: bool,
) -> list[str]:
    """`session`: the command gets a session of its own, with its input as its terminal."""
    words = [os.fspath(TRACER), "--out", os.fspath(trace), "--notify", str(notify)]
    words += ["--library", os.fspath(LIBRARY), "--starter", str(os.getpid())]
    if spool is not None:
        words += ["--spool", os.fspath(spool)]
    if session:
        words += ["--session", "1"]
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
