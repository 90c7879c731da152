"""Starting the tracer so that the command finds everything as the caller left it.

The signals that Clew itself holds back are let through again, and whatever descriptors the
caller handed down stay open: `subprocess` would close them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping

_SET_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def start(
    words: list[str],
    environ: Mapping[str, str],
    *,
    descriptors: tuple[int, int, int],
    handed: Iterable[int],
    blocked: Iterable[int],
) -> int:
    """The process id of the tracer; `handed` are the descriptors meant for it alone, `blocked` the
    signals that the caller held back."""
    actions = [(os.POSIX_SPAWN_DUP2, given, number) for number, given in enumerate(descriptors)]
    return os.posix_spawn(
        words[0],
        words,
        environ,
        file_actions=[*actions, *((os.POSIX_SPAWN_DUP2, number, number) for number in handed)],
        setsigmask=list(blocked),
        setsigdef=_SET_BY_PYTHON,
    )


def wait(pid: int) -> int:
    """Its exit status; -n when signal n ended it."""
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
