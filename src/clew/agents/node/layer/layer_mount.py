"""Put the pass-through layer in place of a mount of a container, before its program runs.

The agent mounts the layer detached, and attaches it over the volume in the mount namespace of the
container: neither the Pod's spec nor its image changes. The kernel ends the layer together with the
namespace.
"""

import errno
import fcntl
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from clew.agents.node.kernel.libc import system_call
from clew.agents.node.kernel.mount_namespace import inside
from clew.witness.tracer_binary import LAYER

_MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT = 429, 430, 431, 432
_CLOEXEC = 1
_SET_FLAG, _SET_STRING, _CREATE = 0, 1, 6
_READ_ONLY, _NO_SETUID, _NO_DEVICES = 0x1, 0x2, 0x4
_FROM_EMPTY_PATH, _TO_EMPTY_PATH = 0x4, 0x40
_PIPE_BYTES: Final = 1 << 20
_CGROUPS = Path("/sys/fs/cgroup")
VALID_SECONDS: Final = 1
"""How long the kernel may remember names and attributes; others may change the volume."""


class Layer:
    """A layer in a container. Its records are read from `descriptor` until it ends."""

    def __init__(self, pid: int, target: int, root: int, *, read_only: bool) -> None:
        """`pid`: a process of the container; `target`: its mount, as a descriptor of a path;
        `root`: what the layer shows. OSError if any step fails: then the mount is as it was."""
        if not os.access(LAYER, os.X_OK):
            raise OSError(errno.ENOENT, "clew-layer is not part of this installation")
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        try:
            self._mount = _make_mount(device, read_only=read_only)
            try:
                # First the mount, which takes no time: the container's program may start any
                # moment, and its first access then waits until the layer answers.
                with inside(pid):
                    flags = _FROM_EMPTY_PATH | _TO_EMPTY_PATH
                    system_call(_MOVE_MOUNT, self._mount, b"", target, b"", flags)
                self._process, self.descriptor = start_layer(device, root)
                _leave_cgroups(self._process.pid)
            except OSError:
                os.close(self._mount)
                raise
        finally:
            os.close(device)

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_failed(self) -> bool:
        """Whether the layer ended otherwise than with its container. Waits for its end."""
        return self._process.wait() != 0

    def finish(self) -> None:
        """End the layer of a container that is gone, once it has reported everything.

        The kernel reports the last closed files when the container's processes are gone already,
        and drops that report with the mount. So the agent holds the mount, and asks for something
        that is answered after it. Read the records meanwhile, or the layer waits for that."""
        with suppress(OSError):
            os.fstatvfs(self._mount)
        os.close(self._mount)

    def close(self) -> None:
        """Wait for the end of the layer, after `finish`."""
        os.close(self.descriptor)
        self._process.wait()


def _make_mount(device: int, *, read_only: bool) -> int:
    """A detached mount of a FUSE file system."""
    context = system_call(_FSOPEN, b"fuse", _CLOEXEC)
    try:
        for name, value in (
            ("source", "clew"),
            ("subtype", "clew"),
            ("fd", str(device)),
            ("rootmode", "40000"),
            ("user_id", "0"),
            ("group_id", "0"),
        ):
            system_call(_FSCONFIG, context, _SET_STRING, name.encode(), value.encode(), 0)
        for name in ("allow_other", "default_permissions"):
            system_call(_FSCONFIG, context, _SET_FLAG, name.encode(), None, 0)
        system_call(_FSCONFIG, context, _CREATE, None, None, 0)
        attributes = _NO_SETUID | _NO_DEVICES | (_READ_ONLY if read_only else 0)
        return system_call(_FSMOUNT, context, _CLOEXEC, attributes)
    finally:
        os.close(context)


def start_layer(
    device: int, root: int, *, process: int | None = None
) -> tuple[subprocess.Popen[bytes], int]:
    """The process of a layer, and the pipe with its records. `process`: a descriptor of the
    container's first process; then the layer needs no privilege, and ends with it."""
    records, written = os.pipe()
    try:
        fcntl.fcntl(records, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        os.set_blocking(records, False)
        passed = [device, root, written] + ([] if process is None else [process])
        words = [*map(str, passed[:3]), str(VALID_SECONDS), *map(str, passed[3:])]
        started = subprocess.Popen(
            [str(LAYER), *words],
            pass_fds=passed,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={},  # it outlives the agent, whose token is in its variables
        )
    except OSError:
        os.close(records)
        raise
    finally:
        os.close(written)
    return started, records


def _leave_cgroups(pid: int) -> None:
    """Put the layer outside of the agent's cgroup: it must survive the agent, or the containers
    that it serves lose their volumes."""
    for directory in (_CGROUPS, *sorted(_CGROUPS.glob("*/"))):
        if (directory / "cgroup.procs").exists() and not (directory / "cgroup.type").exists():
            with suppress(OSError):
                (directory / "cgroup.procs").write_text(str(pid))
