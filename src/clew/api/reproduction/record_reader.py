"""What a reproduction needs of the record: who made the target, specs, and stored bytes."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol

from clew.documents.ids import Digest, Uid
from clew.prov.cluster.ancestry_types import Ancestry
from clew.prov.cluster.facets import PodFacet


class RecordReader(Protocol):
    """The same on this machine and on a server."""

    def find_ancestry(self, target: str, as_of: datetime | None) -> Ancestry: ...

    def load_facets(self, uids: Iterable[Uid]) -> Mapping[Uid, PodFacet]: ...

    def load_hardware(self, node: str | None, at: int | None) -> Mapping[str, Any]:
        """What is known of a node at a time (None: now), by names such as `cpu.model`."""

    def read(self, digest: Digest) -> Iterator[bytes]:
        """The bytes of a stored content."""
