"""What the fold of accesses cannot tell, as events."""

from collections.abc import Iterator

from clew.documents.ids import Locator, Uid
from clew.prov.cluster.watch_declarations import UNWATCHED
from clew.prov.events import AnyEvent, Gap, Looked
from clew.witness.volumes import file_versions
from clew.witness.volumes.accesses import FileAccess
from clew.witness.volumes.file_versions import pod_of
from clew.witness.volumes.volumes import Volume


def too_many_paths(container: Uid, at: int, whole: Locator) -> Iterator[AnyEvent]:
    """What the container accesses on a volume is not followed any more."""
    pod = pod_of(container)
    yield Gap(
        execution=pod,
        n=0,
        at=at,
        activity=container,
        what="accesses to further files",
        why=f"the Pod used more than {file_versions.MAX_PATHS} paths",
        locator=whole,
    )
    yield Looked(execution=pod, n=0, at=at, activity=container, kind=UNWATCHED, locator=whole)


def unknown_names(access: FileAccess, volume: Volume) -> Iterator[AnyEvent]:
    """A hard link was read of which only this name is known: who wrote it under another one?"""
    pod, container, at = pod_of(access.container), access.container, access.at
    yield Gap(
        execution=pod,
        n=0,
        at=at,
        activity=container,
        what="other names of a file",
        why="it is a hard link, and was written under a name that is not known",
        locator=volume.locate(access.path),
    )
    yield Looked(
        execution=pod, n=0, at=at, activity=container, kind=UNWATCHED, locator=volume.whole
    )


def unknown_base(access: FileAccess, locator: Locator) -> Gap:
    """Writing on is a use of what was there, writing anew is not; the observer cannot tell one
    from the other without the old content."""
    return Gap(
        execution=pod_of(access.container),
        n=0,
        at=access.at,
        activity=access.container,
        what="what a file held before it was written",
        why="it wrote to a file whose content was not known: that may be an input too",
        locator=locator,
    )
