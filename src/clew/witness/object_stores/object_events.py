"""Events about one object: the version that was read or written, and what is known of its bytes."""

from collections.abc import Iterator

import msgspec

from clew.documents.ids import Digest, Locator
from clew.prov.events import AnyEvent, Content, Generated, Looked, Used
from clew.witness.object_stores.access_log import LogLine
from clew.witness.object_stores.pod_context import PodContainer, PodContext
from clew.witness.object_stores.versions import KnownVersion, ObjectState, VersionTable

_MODE = 0o100644


class ObjectEvents:
    def __init__(self, context: PodContext, versions: VersionTable) -> None:
        self.context = context
        self.versions = versions

    def use(
        self, place: Locator, state: ObjectState, at: int, by: PodContainer, size: int | None
    ) -> Iterator[AnyEvent]:
        known = self.versions.find(place, state)
        if known is None:
            known = self.versions.add(place, self.context.uid, state, at=at)
        if by.uid not in known.used_by:
            known.used_by.append(by.uid)
            yield Used(
                execution=self.context.uid, n=0, at=at, activity=by.uid, version=known.version
            )
        yield from self._describe_content(known, state, at, size)

    def generate(
        self,
        place: Locator,
        state: ObjectState,
        line: LogLine,
        by: PodContainer,
        size: int | None,
    ) -> Iterator[AnyEvent]:
        at = line.request_read
        known = self.versions.add(place, by.uid, state, at=at)
        yield Generated(
            execution=self.context.uid,
            n=0,
            at=at,
            activity=by.uid,
            version=known.version,
            finished=True,
        )
        yield from self._describe_content(known, state, at, size)

    def learn(
        self, place: Locator, state: ObjectState, at: int, size: int | None
    ) -> Iterator[AnyEvent]:
        """The ETag of a version that was written without an answer that had it."""
        known = self.versions.find(place, state)
        if known is not None:
            yield from self._describe_content(known, state, at, size)

    def _describe_content(
        self, known: KnownVersion, state: ObjectState, at: int, size: int | None
    ) -> Iterator[AnyEvent]:
        """Its ETag stands for its bytes: they pass through the sidecar, and are not read there."""
        known.size = size if known.size is None else known.size
        if known.has_content or state.etag is None or known.size is None:
            return
        known.has_content = True
        known.state = msgspec.structs.replace(known.state, etag=state.etag)
        yield Content(
            execution=self.context.uid,
            n=0,
            at=at,
            version=known.version,
            digest=Digest(f"etag:{state.etag}"),
            size=known.size,
            mode=_MODE,
            mtime=at,
            stored=False,
            source=known.state.source,
        )

    def look(self, by: PodContainer, kind: str, locator: Locator, answer: str, at: int) -> Looked:
        return Looked(
            execution=self.context.uid,
            n=0,
            at=at,
            activity=by.uid,
            kind=kind,
            locator=locator,
            answer=answer,
        )
