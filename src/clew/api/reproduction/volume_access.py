"""Bytes to and from fresh volumes, through a helper Pod.

A volume can be reached from a Pod only, and often from one node. The helper runs a program
(`replay.pods.volume_files`) whose source, input and output go through the connection of
`kubectl exec`: it needs neither a network to this machine nor a token. It exists only between two
Pods of the plan, so that it never keeps a volume on a node that another Pod does not get.
"""

import inspect
import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from clew.api.reproduction.record_reader import RecordReader
from clew.errors import ClewError
from clew.kube.scratch import manifests, pod_exec, pod_run
from clew.kube.scratch.scratch_client import ScratchClient
from clew.kube.scratch.scratch_space import ScratchSpace
from clew.replay.pods import volume_files_main
from clew.replay.pods.stages import Expected, Place, Restored

_SECONDS = 3600
_MAX_OUTPUT = 64 << 20


class _Hashed(msgspec.Struct):
    digest: str | None
    size: int
    error: str | None = None


@dataclass(frozen=True)
class VolumeAccess:
    """`image`: of the helper; it has Python and blake3."""

    client: ScratchClient
    space: ScratchSpace
    image: str

    def transfer(
        self,
        record: RecordReader,
        *,
        number: int,
        restore: Sequence[Restored],
        directories: Sequence[Place],
        expect: Sequence[Expected],
    ) -> list[str | None]:
        """Hash what a Pod left, then restore what the next one needs. Returns the digests."""
        places = [*directories, *(one.place for one in restore), *(one.place for one in expect)]
        claims = sorted({place.container for place in places})
        if not claims:
            return []
        name = f"helper-{number}"
        self.space.add(manifests.make_helper(name, self.image, claims, seconds=_SECONDS))
        namespace = self.space.space.namespace
        try:
            pod_run.await_running(self.client, namespace, name)
            command = ("python3", "-c", inspect.getsource(volume_files_main), manifests.ROOT)
            request = json.dumps(_describe(restore, directories, expect)).encode() + b"\n"
            given = _join(request, restore, record)
            printed = pod_exec.run_program(
                self.client, namespace, name, command, given, most=_MAX_OUTPUT
            )
        except pod_exec.ProgramFailed as error:
            raise ClewError(
                f"the files of a fresh volume cannot be written or read: {str(error)[-300:]}",
                hint="is the image of the helper one of Clew? --helper-image IMAGE",
            ) from error
        finally:
            self.space.delete_pod(name)
        lines = printed.splitlines()
        if len(lines) != len(expect):
            raise ClewError("the helper in the scratch namespace did not hash every file")
        return [msgspec.json.decode(line, type=_Hashed).digest for line in lines]


def _describe(
    restore: Sequence[Restored], directories: Sequence[Place], expect: Sequence[Expected]
) -> dict[str, Any]:
    return {
        "directories": [_encode(place) for place in directories],
        "restore": [
            {"path": _encode(one.place), "size": one.size, "mode": one.mode, "mtime": one.mtime}
            for one in restore
        ],
        "hash": [
            {"path": _encode(one.place), "algorithm": one.digest.partition(":")[0]}
            for one in expect
        ],
    }


def _encode(place: Place) -> str:
    return b64encode(place.container.encode() + b"/" + place.path).decode()


def _join(request: bytes, restore: Sequence[Restored], record: RecordReader) -> Iterator[bytes]:
    """The request, and the bytes of the files. A content that is not as long as it says would
    shift all that follow."""
    yield request
    for one in restore:
        size = 0
        assert one.digest is not None  # only objects have versions elsewhere
        for piece in record.read(one.digest):
            size += len(piece)
            yield piece
        if size != one.size:
            raise ClewError(f"the content of {one.place.locator} has another size than recorded")
