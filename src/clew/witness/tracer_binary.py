"""Find clew-trace and build its command line."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from clew.documents.ids import Uid
from clew.errors import RecordingFailed

DIRECTORY = Path(__file__).resolve().parents[1] / "_native"
TRACER = DIRECTORY / "clew-trace"
LIBRARY = DIRECTORY / "libclew-inject.so"  # x86-64 only: the tracer works without it
SANDBOX = DIRECTORY / "clew-sandbox"
LAYER = DIRECTORY / "clew-layer"
MOUNT = DIRECTORY / "clew-mount"


def require() -> None:
    """Raise an error with a hint if the tracer was not built."""
    if os.access(TRACER, os.X_OK):
        return
    try:
        why = (DIRECTORY / "not-built.txt").read_text().strip()
    except OSError:
        why = "it is not part of this installation"
    raise RecordingFailed(
        f"clew-trace, which records system calls, is missing: {why}",
        hint="install a C compiler (Debian: apt-get install gcc libc6-dev), then reinstall clew",
    )


def tracer_command(
    command: Sequence[str],
    *,
    tracer: str,
    library: str | None,
    trace: str,
    save_to: str | None,
    notify: int,
    exclude: Iterable[str],
    starter: int | None = None,
    session: bool = False,
    environment: str | None = None,
    opened: Mapping[int, tuple[int, str]] | None = None,
    output_position: int | None = None,
    ask: int | None = None,
    pin_clock: int | None = None,
    pin_random: str | None = None,
    serial: bool = False,
    prompt: bool = False,
    steps: bool = False,
    isolated: bool = False,
) -> list[str]:
    """The command line that runs `command` under the tracer.

    `starter`: the process with which the tracer ends; `session`: the command gets its own session,
    with its input as the terminal; `environment`: a file with the command's variables; `opened`:
    files that are open from the start, as (flags, path) by descriptor; `output_position`: shared
    memory that says how much of the output was read; `ask`: a socket that decides which programs
    need not run; `pin_clock`: the start of its wall clock; `pin_random`: the seed of its random
    numbers; `serial`: run one process at a time; `prompt`: write the records of a child as soon as
    it ends; `isolated`: the command is not trusted and must not reach the tracer.
    """
    arguments = [tracer, "--out", trace, "--notify", str(notify)]
    if starter is not None:
        arguments += ["--starter", str(starter)]
    if save_to is not None:
        arguments += ["--spool", save_to]
    if session:
        arguments += ["--session", "1"]
    if environment is not None:
        arguments += ["--environment", environment]
    for descriptor, (flags, path) in (opened or {}).items():
        arguments += ["--open", f"{descriptor}:{flags}:{path}"]
    options = {
        "--library": library,
        "--pin-clock": pin_clock,
        "--pin-random": pin_random,
        "--serial": 1 if serial else None,
        "--prompt": 1 if prompt else None,
        "--steps": 1 if steps else None,
        "--isolated": 1 if isolated else None,
        "--streams": output_position,
        "--ask": ask,
    }
    for name, value in options.items():
        arguments += [] if value is None else [name, str(value)]
    for glob in exclude:
        arguments += ["--exclude", glob]
    return [*arguments, "--", *command]


def find_outer_execution() -> Uid | None:
    """The uid of the execution that records this process already, from the path of its spool."""
    try:
        with open("/proc/self/status") as status:
            tracer = next(line.split()[1] for line in status if line.startswith("TracerPid:"))
        with open(f"/proc/{tracer}/cmdline", "rb") as file:
            command = file.read().split(b"\0")
    except (OSError, StopIteration):
        return None
    if tracer == "0" or os.path.basename(command[0]) != b"clew-trace" or b"--out" not in command:
        return None
    spool = os.path.dirname(command[command.index(b"--out") + 1])
    return Uid(os.fsdecode(os.path.basename(spool)))
