"""Start the tracer so that the command inherits everything from Clew's caller.

Signals that Clew itself blocks are unblocked, and descriptors that the caller left open stay open:
`subprocess` would close them.
"""

import os
import signal
from collections.abc import Iterable, Mapping

_SET_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def start(
    command: list[str],
    environ: Mapping[str, str],
    *,
    descriptors: tuple[int, int, int],
    handed: Iterable[int],
    blocked: Iterable[int],
) -> int:
    """Start the tracer and return its process id. `handed` are descriptors for the tracer alone,
    `blocked` the signals that the caller had blocked."""
    actions = [(os.POSIX_SPAWN_DUP2, given, number) for number, given in enumerate(descriptors)]
    return os.posix_spawn(
        command[0],
        command,
        environ,
        file_actions=[*actions, *((os.POSIX_SPAWN_DUP2, number, number) for number in handed)],
        setsigmask=list(blocked),
        setsigdef=_SET_BY_PYTHON,
    )


def wait(pid: int) -> int:
    """Wait for the exit status; -n if signal n ended the process."""
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)
