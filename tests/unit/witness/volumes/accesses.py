"""Accesses of containers to a volume, and what a fold of them gives."""

from collections.abc import Iterable

from clew.documents.ids import Digest, Uid
from clew.prov.events import AnyEvent, Generated, Invalidated, Used, Version
from clew.witness.volumes.access_fold import AccessFold
from clew.witness.volumes.accesses import (
    Access,
    ContentAnswer,
    ContentRequest,
    FileAccess,
    FileState,
)
from clew.witness.volumes.volumes import Volume, claim_volume

POD, OTHER = Uid("a" * 32), Uid("b" * 32)


MAIN, SECOND, FOREIGN = Uid(f"{POD}/main"), Uid(f"{POD}/second"), Uid(f"{OTHER}/main")


CLAIM = claim_volume("ml", "data", "pv-1")


STATE = FileState(size=3, mtime=10, ctime=10, mode=0o100644, born=10)


RAW = CLAIM.locate(b"/raw")


def fold_of(*volumes: Volume) -> AccessFold:
    fold = AccessFold()
    for volume in volumes or (CLAIM,):
        fold.watch(volume, at=10_000_005)
    return fold


def read(container: Uid, path: bytes = b"/raw", at: int = 100, **more: object) -> FileAccess:
    given = {"volume": CLAIM.key, "handle": path, "state": STATE, "read": True, **more}
    return FileAccess(at=at, container=container, path=path, **given)  # type: ignore[arg-type]


def write(container: Uid, path: bytes = b"/raw", at: int = 100, **more: object) -> FileAccess:
    return read(container, path, at, **{"read": False, "written": True, **more})


def run(fold: AccessFold, *accesses: Access) -> list[AnyEvent]:
    return [event for access in accesses for event in fold.apply(access)]


def brief(events: Iterable[AnyEvent]) -> list[tuple[str, str, Version]]:
    return [
        (type(event).__name__, event.how, event.version)
        for event in events
        if isinstance(event, Used | Generated | Invalidated)
    ]


def answer(request: ContentRequest, digest: str = "1", **more: object) -> ContentAnswer:
    given = {"size": request.state.size, "mode": 0o100644, "mtime": 10, **more}
    return ContentAnswer(digest=Digest(f"blake3:{digest * 64}"), **given)  # type: ignore[arg-type]


LOCAL = claim_volume("ml", "data", "pv-1", local=True)
