"""End processes that a server left behind.

Normally there are none: `run_child` ends everything when the server ends, however it ends. They
exist only if `run_child` was killed, too. They are found by a variable in their environment, which
all descendants of a notebook inherit.
"""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

VARIABLE = "CLEW_WORKLOAD"
"""`PROJECT_UID/RESOURCE_UID` in the environment of everything that runs for a resource."""
_LOG = logging.getLogger("clew.workloads")
_MAX_BYTES = 1 << 20


def end_orphans(owner: str) -> int:
    """Kill the processes of this user with a value of the variable that begins with `owner`;
    returns how many there were."""
    count = 0
    spared = set(_ancestors())
    for pid in _find(owner):
        if pid not in spared:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                count += 1
    if count:
        _LOG.warning("ended %s processes that were left behind", count)
    return count


def _find(owner: str) -> Iterator[int]:
    wanted = f"{VARIABLE}={owner}/".encode()
    own = os.geteuid()
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        place = Path("/proc") / name
        with suppress(OSError):
            if place.stat().st_uid != own:
                continue
            with open(place / "environ", "rb") as file:
                variables = file.read(_MAX_BYTES).split(b"\0")
            if any(variable.startswith(wanted) for variable in variables):
                yield int(name)


def _ancestors() -> Iterator[int]:
    """This process and those that it was started from."""
    pid = os.getpid()
    while pid > 0:
        yield pid
        try:
            text = Path(f"/proc/{pid}/stat").read_bytes()
            pid = int(text.rpartition(b")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            return
