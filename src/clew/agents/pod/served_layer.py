"""A layer that a container mounted itself, and the volume below it.

The sidecar has no right to open files by handles, and no mounts of the volumes: it opens them by
their paths, below the directory that the container passed.
"""

import ctypes
import os
import struct

from clew.agents.node.kernel.libc import system_call
from clew.agents.node.kernel.volume_mount import VolumeMount
from clew.agents.node.layer.layer_mount import Layer, start_layer

_OPENAT2 = 437
_NO_MAGIC_LINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08


class ServedLayer(Layer):
    """Serves the layer until the container's first process has ended."""

    def __init__(self, device: int, root: int, mount: int, process: int) -> None:
        """`device`: an opened /dev/fuse; `root`: what the layer shows; `mount`: the layer, kept so
        that the kernel reports the last files; `process`: the container's first process. Closes
        the mount in the end, and the device at once."""
        self._mount = mount
        self._process, self.descriptor = start_layer(device, root, process=process)
        os.close(device)

    def finish(self) -> None:
        """It ends by itself."""

    def close(self) -> None:
        os.close(self.descriptor)
        self._process.wait()
        os.close(self._mount)


class ServedVolume(VolumeMount):
    """The volume below a layer."""

    def open(self, handle: bytes, flags: int, path: bytes = b"") -> int:
        """Open a file by its path, without following links. The reader compares its state."""
        how = struct.pack(
            "=QQQ", flags | os.O_CLOEXEC, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGIC_LINKS
        )
        name = path.removeprefix(self.prefix).lstrip(b"/") or b"."
        return system_call(
            _OPENAT2, self.root, ctypes.c_char_p(name), ctypes.c_char_p(how), len(how)
        )
