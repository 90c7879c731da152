"""The project's log, `.clew/log`: what Clew itself did when something went wrong.

An entry is one line: time, process id, command, level and text. It is written only when there is
something to say (an error, a recovery, a failed send, the result of gc, rm or fsck), so a
successful `exec` never opens it. Secrets are masked, and control characters escaped.

Several processes may write at once: an entry is one appended write, and the process that finds the
file too large renames it to `log.1` under a lock. A log that cannot be written (a full disk, a
read-only project) never fails the command.
"""

import fcntl
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

from clew import settings
from clew.errors import ClewError
from clew.project_directory import ProjectDirectory
from clew.redaction import Redactor, mask_text

LIMIT = 1 << 20
"""Bytes of `log` at which it becomes `log.1`: together they hold at most about twice as much."""
LONGEST = 16_000
"""Characters of one entry; of a longer one the end is kept, where a traceback says what failed."""

Level = Literal["info", "warning", "error"]


def write(directory: ProjectDirectory, level: Level, text: str) -> None:
    """Add an entry."""
    with suppress(Exception):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        entry = _escape(_redact(directory, text))[-LONGEST:]
        _append(directory.log, f"{stamp} {os.getpid()} {_command()} {level} {entry}\n")


def write_error(directory: ProjectDirectory, error: BaseException, *, doing: str = "") -> None:
    """Add an entry for an error: its code and message, or the traceback of what is a bug."""
    if isinstance(error, ClewError):
        text = f"{error.code}: {error.message}"
    else:
        import traceback

        text = "".join(traceback.format_exception(error))
    write(directory, "error", f"{doing}: {text}" if doing else text)


def _redact(directory: ProjectDirectory, text: str) -> str:
    own = {"PROJECT_TOKEN": directory.key.decode(errors="surrogateescape")}
    redactor = Redactor({**own, **os.environ}, settings.load().redact)
    return mask_text(redactor.text(text))


def _escape(text: str) -> str:
    """The text on one line, with every character that a terminal would obey made visible."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _command() -> str:
    """Which command this is: `exec`; of a program that uses the Python interface, its name."""
    program = Path(sys.argv[0]).name or "python"
    if program not in ("clew", "__main__.py"):
        return _escape(program).replace(" ", "_")
    word = next((word for word in sys.argv[1:] if not word.startswith("-")), "clew")
    return word if word.isidentifier() else "clew"


def _append(path: Path, line: str) -> None:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        os.write(descriptor, line.encode(errors="backslashreplace"))
        if os.fstat(descriptor).st_size > LIMIT:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_ino == path.stat().st_ino:  # no other process renamed it
                path.rename(path.with_name("log.1"))
    finally:
        os.close(descriptor)
