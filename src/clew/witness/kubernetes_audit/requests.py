"""Requests that changed an input of Pods or touched a Pod by hand: executions, kind `request`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from blake3 import blake3

from clew.documents.ids import Digest, Locator, Uid
from clew.prov.cluster.activity_uids import REQUEST
from clew.prov.cluster.facets import RequestFacet, write_facet
from clew.prov.cluster.locators import config_map_locator, pod_name_locator, secret_locator
from clew.prov.events import (
    AnyEvent,
    Content,
    Ended,
    Gap,
    Generated,
    Informed,
    Invalidated,
    Started,
    Version,
)
from clew.redaction import mask_text
from clew.redaction.names import is_secret_option, is_secret_variable
from clew.witness.kubernetes_audit.audit_event import AuditEvent, ObjectReference
from clew.witness.kubernetes_audit.kubernetes_time import to_nanoseconds
from clew.witness.kubernetes_audit.object_types import ConfigMap, is_name

_LEADER = "control-plane.alpha.kubernetes.io/leader"


class Change(NamedTuple):
    """The events of a request, and the contents that they name as stored."""

    events: list[AnyEvent]
    contents: list[bytes]


def request_uid(event: AuditEvent) -> Uid:
    """The uid of a request. The client may have chosen the `auditID`, even one that is the uid of a
    Pod, but not the time at which the API server received the request."""
    said = (event.audit_id, event.user.username, event.verb, event.request_uri)
    time = to_nanoseconds(event.request_received_timestamp)
    return Uid(blake3(msgspec.msgpack.encode([*said, time])).hexdigest(length=16))


def describe_touch(event: AuditEvent, about: ObjectReference, how: str) -> Iterator[AnyEvent]:
    """A user worked in a Pod, or edited it: what it does from now on is not in its spec."""
    if not is_name(about.namespace) or not is_name(about.name):
        return
    uid = request_uid(event)
    yield from describe_request(event, about)
    yield _generate(uid, pod_name_locator(about.namespace, about.name), event, how)


def describe_edit(event: AuditEvent, about: ObjectReference, controller: Uid) -> Iterator[AnyEvent]:
    """A user changed what creates Pods."""
    yield from describe_request(event, about)
    time = to_nanoseconds(event.request_received_timestamp)
    yield Informed(
        execution=controller, n=0, at=time, activity=controller, by=request_uid(event), via="edit"
    )


def describe_secret(event: AuditEvent, about: ObjectReference) -> Iterator[AnyEvent]:
    """A Secret was written or deleted. Its content is never read."""
    if not is_name(about.namespace) or event.verb == "deletecollection":
        return
    yield from describe_request(event, about)
    uid = request_uid(event)
    if not is_name(about.name):  # the API server made the name, and only its answer has it
        at = to_nanoseconds(event.request_received_timestamp)
        what, why = (
            "the name of a Secret",
            "it was generated, and answers with Secrets are not logged",
        )
        yield Gap(execution=uid, n=0, at=at, activity=uid, what=what, why=why)
        return
    locator = secret_locator(about.namespace, about.name)
    yield _delete(uid, locator, event) if event.verb == "delete" else _generate(uid, locator, event)


def describe_config_map(event: AuditEvent, about: ObjectReference, found: ConfigMap) -> Change:
    """A version of a ConfigMap, by its content."""
    namespace, name = found.metadata.namespace, found.metadata.name
    if not is_name(namespace) or not is_name(name) or _LEADER in (found.metadata.annotations or {}):
        return Change([], [])
    named = msgspec.structs.replace(
        about, name=name, resource_version=found.metadata.resource_version
    )
    uid, locator = request_uid(event), config_map_locator(namespace, name)
    events = list(describe_request(event, named))
    if event.verb in ("delete", "deletecollection"):
        return Change([*events, _delete(uid, locator, event)], [])
    events.append(_generate(uid, locator, event))
    data = serialize_config_map(found)
    secret = _find_secret(found)
    at = to_nanoseconds(event.request_received_timestamp)
    events.append(
        Content(
            execution=uid,
            n=0,
            at=at,
            version=Version(locator, uid, 1),
            digest=Digest(f"blake3:{blake3(data).hexdigest()}"),
            size=len(data),
            mode=0,
            mtime=at,
            stored=secret is None,
        )
    )
    if secret is None:
        return Change(events, [data])
    why = f"it may hold a secret in {secret[:200]!r}"
    gap = Gap(execution=uid, n=0, at=at, activity=uid, what="content", why=why, locator=locator)
    return Change([*events, gap], [])


def serialize_config_map(found: ConfigMap) -> bytes:
    """The content of a ConfigMap: JSON with sorted names, both fields always."""
    return msgspec.json.encode(
        {"binaryData": found.binary_data or {}, "data": found.data or {}}, order="sorted"
    )


def _find_secret(found: ConfigMap) -> str | None:
    """The key of a value that has the name or the form of a secret."""
    for name, value in (found.data or {}).items():
        if is_secret_variable(name) or is_secret_option(name) or mask_text(value) != value:
            return name
    return None


def describe_request(event: AuditEvent, about: ObjectReference) -> Iterator[AnyEvent]:
    uid = request_uid(event)
    at = to_nanoseconds(event.request_received_timestamp)
    yield Started(
        execution=uid,
        n=0,
        at=at,
        activity=uid,
        kind=REQUEST,
        agent=event.agent or None,
        facets=write_facet(
            RequestFacet(
                verb=event.verb,
                resource=about.resource,
                subresource=about.subresource,
                namespace=about.namespace,
                name=about.name,
                resource_version=about.resource_version,
            )
        ),
    )
    yield Ended(execution=uid, n=0, at=at, activity=uid, status=0)


def _generate(uid: Uid, locator: Locator, event: AuditEvent, how: str = "write") -> Generated:
    at = to_nanoseconds(event.request_received_timestamp)
    return Generated(
        execution=uid,
        n=0,
        at=at,
        activity=uid,
        version=Version(locator, uid, 1),
        how=how,
        finished=True,
    )


def _delete(uid: Uid, locator: Locator, event: AuditEvent) -> Invalidated:
    at = to_nanoseconds(event.request_received_timestamp)
    return Invalidated(execution=uid, n=0, at=at, activity=uid, version=Version(locator, uid, 1))
