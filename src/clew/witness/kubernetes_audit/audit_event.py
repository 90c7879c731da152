"""An event of the API server's audit log, as far as it is read.

The API server writes the log, but the webhook takes events from every client that has its token,
and every text in an event was chosen by some client. So sizes are bounded and types are checked.
Clients may also choose the `auditID` (header `Audit-ID`), so it identifies nothing alone.
"""

from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import msgspec

MAX_EVENT_BYTES = 16 << 20
"""Bytes of one event. An object has 1.5 MB in etcd, and an event has it twice."""
STARTED, COMPLETE = "ResponseStarted", "ResponseComplete"
TRUNCATED = "audit.k8s.io/truncated"


class Malformed(Exception):
    """It is not an audit event; the message says why, without quoting it."""


class User(msgspec.Struct, frozen=True):
    username: str = ""
    groups: tuple[str, ...] = ()


class ObjectReference(msgspec.Struct, frozen=True, rename="camel"):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    api_group: str = ""
    subresource: str = ""
    resource_version: str = ""


class ResponseStatus(msgspec.Struct, frozen=True):
    code: int = 0


class AuditEvent(msgspec.Struct, frozen=True, rename="camel"):
    audit_id: str = msgspec.field(name="auditID")
    stage: str
    verb: str
    request_received_timestamp: datetime
    user: User = User()
    request_uri: str = msgspec.field(default="", name="requestURI")
    impersonated_user: User | None = None
    user_agent: str = ""
    object_ref: ObjectReference | None = None
    response_status: ResponseStatus | None = None
    request_object: msgspec.Raw = msgspec.Raw()
    response_object: msgspec.Raw = msgspec.Raw()
    annotations: dict[str, str] = {}

    @property
    def agent(self) -> str:
        """Who asked: the user or service account as which the request was allowed."""
        user = self.user if self.impersonated_user is None else self.impersonated_user
        return user.username[:MAX_NAME].replace("\0", "")

    @property
    def created(self) -> bool:
        """Whether an object was made; `apply` makes one with a PATCH."""
        return self.response_status is not None and self.response_status.code == 201

    @property
    def succeeded(self) -> bool:
        code = 0 if self.response_status is None else self.response_status.code
        return 200 <= code < 300 or code == 101

    @property
    def is_dry_run(self) -> bool:
        """Whether the request was answered and changed nothing."""
        if "dryRun" in parse_qs(urlsplit(self.request_uri).query):
            return True
        if self.verb not in ("delete", "deletecollection") or not self.request_object:
            return False
        try:
            return bool(msgspec.json.decode(self.request_object, type=_DeleteOptions).dry_run)
        except msgspec.DecodeError:
            return False

    @property
    def is_by_hand(self) -> bool:
        """Whether a person asked, as far as it can be told: not a part of the control plane, a
        node or a service account, unless it asked with kubectl."""
        if self.user_agent.startswith("kubectl"):
            return True
        user = self.user if self.impersonated_user is None else self.impersonated_user
        return not user.username.startswith("system:")


class _DeleteOptions(msgspec.Struct, rename="camel"):
    dry_run: list[str] | None = None


MAX_NAME = 1024
_decoder = msgspec.json.Decoder(AuditEvent)


class _EventList(msgspec.Struct):
    items: list[msgspec.Raw]


def parse_event(line: bytes | msgspec.Raw) -> AuditEvent:
    """The event of a line of the log, or of an item that the webhook got."""
    if len(memoryview(line)) > MAX_EVENT_BYTES:
        raise Malformed(f"it has more than {MAX_EVENT_BYTES} bytes")
    try:
        event = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(type(error).__name__) from error
    except RecursionError as error:
        raise Malformed("it is nested too deeply") from error
    if event.request_received_timestamp.tzinfo is None:
        time = event.request_received_timestamp.replace(tzinfo=UTC)
        return msgspec.structs.replace(event, request_received_timestamp=time)
    return event


def split_event_list(body: bytes) -> list[msgspec.Raw]:
    """The events of an `EventList`, as the API server sends it to a webhook."""
    try:
        return msgspec.json.decode(body, type=_EventList).items
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(type(error).__name__) from error
    except RecursionError as error:
        raise Malformed("it is nested too deeply") from error
