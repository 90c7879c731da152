"""Read `/proc/PID/mountinfo`: which mounts a container has, and which container it is."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from clew.documents.ids import Uid
from clew.prov.cluster.activity_uids import object_uid

_NETWORK_FILESYSTEMS = re.compile(
    r"nfs4?|cifs|smb3|ceph|lustre|9p|virtiofs|afs|beegfs|gpfs|orangefs|ocfs2|gfs2|fuse(\..*)?"
)
"""Other machines may change the files of these, which fanotify does not see. FUSE has many:
ceph-fuse, glusterfs, juicefs, s3fs."""

_ESCAPE = re.compile(rb"\\([0-7]{3})")
_LOG_OF_CONTAINER = re.compile(rb"/pods/([0-9A-Za-z-]+)/containers/([^/]+)/[^/]+$")


class MountEntry(NamedTuple):
    id: int
    device: bytes
    root: bytes
    """The directory of the file system that is mounted."""
    point: bytes
    """Where, as the process sees it."""
    filesystem: str
    read_only: bool

    @property
    def network(self) -> bool:
        """Whether other machines may change its files."""
        return _NETWORK_FILESYSTEMS.fullmatch(self.filesystem) is not None


class ContainerName(NamedTuple):
    pod: Uid
    name: str


def parse_mounts(table: bytes) -> list[MountEntry]:
    """The mounts of a table. Lines that the kernel would not write are passed over."""
    found = []
    for line in table.split(b"\n"):
        before, dash, after = line.partition(b" - ")
        fields, kind = before.split(b" "), after.split(b" ")
        if not dash or len(fields) < 6 or not fields[0].isdigit():
            continue
        options = {*fields[5].split(b","), *(kind[2].split(b",") if len(kind) > 2 else ())}
        found.append(
            MountEntry(
                id=int(fields[0]),
                device=fields[2],
                root=_unescape(fields[3]),
                point=_unescape(fields[4]),
                filesystem=kind[0].decode(errors="replace"),
                read_only=b"ro" in options,
            )
        )
    return found


def find_container(mounts: Sequence[MountEntry]) -> ContainerName | None:
    """Which container of which Pod has these mounts: the kubelet gives each one a file for its last
    message, below a directory with its name. The sandbox of a Pod has none."""
    for mount in mounts:
        match = _LOG_OF_CONTAINER.search(mount.root)
        pod = object_uid(match[1].decode()) if match else None
        if match and pod:
            return ContainerName(pod, match[2].decode(errors="replace"))
    return None


def find_mount(mounts: Sequence[MountEntry], point: bytes) -> MountEntry | None:
    """The mount at a path of the container. While its runtime prepares it, the path of the
    container's root still precedes it. The last mount covers earlier ones."""
    wanted = b"/" + point.strip(b"/")
    exact = [mount for mount in mounts if mount.point == wanted]
    matching = exact or [mount for mount in mounts if mount.point.endswith(b"/rootfs" + wanted)]
    return matching[-1] if matching else None


def _unescape(text: bytes) -> bytes:
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 8) & 255]), text)
