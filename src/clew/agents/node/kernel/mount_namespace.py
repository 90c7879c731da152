"""Act in the mount namespace of a container, for a moment and in one thread.

The kernel copies and attaches mounts only in the namespace of the caller. A thread may have a
namespace of its own once its root and working directory are no longer shared with the others.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from clew.agents.node.kernel.libc import AT_EMPTY_PATH, call, system_call

_CLONE_FS, _CLONE_NEWNS = 0x200, 0x20000
_OPEN_TREE = 428
_CLONE, _CLOEXEC = 1, 0o2000000
_thread = threading.local()


@contextmanager
def inside(pid: int) -> Iterator[None]:
    """Run the body in the mount namespace of a process. Only descriptors that are open already
    lead to files of the agent meanwhile."""
    if not getattr(_thread, "own", False):
        call("unshare", _CLONE_FS)
        _thread.own = True
    home = os.open("/proc/thread-self/ns/mnt", os.O_RDONLY)
    try:
        other = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
        try:
            call("setns", other, _CLONE_NEWNS)
        finally:
            os.close(other)
        try:
            yield
        finally:
            call("setns", home, _CLONE_NEWNS)
    finally:
        os.close(home)


def copy_mount(pid: int, descriptor: int) -> int:
    """A detached copy of a mount of a process, as a descriptor of its root directory."""
    flags = _CLONE | _CLOEXEC | AT_EMPTY_PATH
    with inside(pid):
        tree = system_call(_OPEN_TREE, descriptor, b"", flags)
    try:
        return os.open(b".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=tree)
    finally:
        os.close(tree)
