"""The proxy's traffic."""

from datetime import datetime

from clew.documents.document import Document


class TargetTraffic(Document, frozen=True, kw_only=True):
    """The traffic between the proxy and one target."""

    kind: str
    namespace: str
    name: str
    last_activity: datetime
    requests: int
    sockets: int
    bytes_in: int
    bytes_out: int


class TrafficList(Document, frozen=True, kw_only=True):
    traffic: tuple[TargetTraffic, ...]
