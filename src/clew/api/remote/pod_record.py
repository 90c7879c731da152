"""What a server knows of the Pods that made a target. They run with the rights of the caller."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from datetime import datetime
from typing import Any

from clew.api.pods import Pods
from clew.api.remote.client import Client
from clew.documents.document import to_nanoseconds
from clew.documents.ids import Digest, Uid
from clew.documents.lineage.cluster_state import ClusterState
from clew.prov.cluster.ancestry_types import Ancestry
from clew.prov.cluster.facets import PodFacet

_SECONDS = 600.0


class PodRecord:
    """See `clew.api.reproduction.record_reader.RecordReader`."""

    def __init__(self, client: Client, chunks: Callable[[str], Iterator[bytes]]) -> None:
        self._client = client
        self._chunks = chunks

    def find_ancestry(self, target: str, as_of: datetime | None) -> Ancestry:
        until = None if as_of is None else to_nanoseconds(as_of)
        arguments = {"target": target, "as_of": until}
        return self._client.query("ancestry", Ancestry, arguments, seconds=_SECONDS)

    def load_facets(self, uids: Iterable[Uid]) -> Mapping[Uid, PodFacet]:
        return self._client.query(
            "pod_facets", dict[Uid, PodFacet], {"uids": [*uids]}, seconds=_SECONDS
        )

    def load_hardware(self, node: str | None, at: int | None) -> Mapping[str, Any]:
        return self._client.query("node_hardware", dict[str, Any], {"node": node, "at": at})

    def read(self, digest: Digest) -> Iterator[bytes]:
        return self._chunks(digest)


def load_state(client: Client, as_of: datetime | None, namespace: str | None) -> ClusterState:
    query = {} if as_of is None else {"as_of": as_of.isoformat()}
    return client.get(
        "cluster", ClusterState, **query, **({"namespace": namespace} if namespace else {})
    )


def open_pods(client: Client, chunks: Callable[[str], Iterator[bytes]]) -> Pods:
    return Pods(
        lambda: nullcontext(PodRecord(client, chunks)),
        lambda: client.given_secrets,
        client.settings.s3,
        lambda as_of, namespace: load_state(client, as_of, namespace),
    )
