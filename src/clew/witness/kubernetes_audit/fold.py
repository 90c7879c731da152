"""One audit event in, Clew events out.

The same audit event gives the same Clew events, apart from what the state adds, and repeated ones
do no harm. What is of no use for lineage, failed, or changed nothing gives no events. What should
have been there and is not (a body that was truncated, or that the audit policy left out) gives a
gap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from clew.documents.ids import Uid
from clew.prov.cluster.activity_uids import object_uid
from clew.prov.events import AnyEvent
from clew.witness.kubernetes_audit import claims, controllers, endpoints, requests
from clew.witness.kubernetes_audit.audit_event import (
    COMPLETE,
    STARTED,
    TRUNCATED,
    AuditEvent,
    ObjectReference,
)
from clew.witness.kubernetes_audit.audit_log_activity import describe_gap
from clew.witness.kubernetes_audit.fold_state import FoldState, remember
from clew.witness.kubernetes_audit.kubernetes_time import to_nanoseconds
from clew.witness.kubernetes_audit.object_types import (
    MIRROR,
    AnyObject,
    Claim,
    ConfigMap,
    EndpointSlice,
    Job,
    Metadata,
    Pod,
    Removed,
    Service,
    Volume,
    decode_object,
    is_name,
    is_removed,
)
from clew.witness.kubernetes_audit.pods.pods import describe_pod

_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
_BY_HAND = frozenset({"exec", "attach", "portforward"})
_EDITS = {"": "edit", "ephemeralcontainers": "ephemeralcontainers", "resize": "edit"}
"""How a Pod is touched by an update of it, or of a subresource."""


class Observed:
    """The events of some audit events, and the contents that they name as stored."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.contents: list[bytes] = []


class AuditFold:
    """Folds the events of one log."""

    def __init__(self, state: FoldState, *, source: str, patterns: Sequence[str] = ()) -> None:
        """`source`: the name of the log. `patterns`: the user's, for names of secrets."""
        self.state = state
        self._source = source
        self._patterns = tuple(patterns)
        self._handlers: dict[tuple[str, str], Callable[[_Answer, Observed], None]] = {
            ("", "pods"): self._add_pod,
            ("", "configmaps"): self._add_config_map,
            ("", "persistentvolumeclaims"): self._add_claim,
            ("", "persistentvolumes"): self._add_volume,
            ("", "services"): self._add_service,
            ("discovery.k8s.io", "endpointslices"): self._add_endpoints,
            ("batch", "jobs"): self._add_job,
            ("kubeflow.org", "tfjobs"): self._add_job,
            ("kubeflow.org", "pytorchjobs"): self._add_job,
        }

    def add(self, event: AuditEvent, found: Observed) -> None:
        """Add what the event says to `found`."""
        about = event.object_ref
        if about is None or not event.succeeded or event.is_dry_run:
            return
        if about.resource == "pods" and about.subresource in _BY_HAND:
            if event.stage in (STARTED, COMPLETE):
                found.events += requests.describe_touch(event, about, about.subresource)
        elif event.stage == COMPLETE and event.verb in _WRITES:
            if about.resource == "secrets" and not about.api_group:
                found.events += requests.describe_secret(event, about)
            else:
                self._add_answer(event, about, found)

    def add_gap(self, at: int, what: str, why: str, found: Observed) -> None:
        """Add that something of the log was not seen."""
        found.events += describe_gap(self._source, at, what, why)

    def _add_answer(self, event: AuditEvent, about: ObjectReference, found: Observed) -> None:
        if about.subresource not in ("", "status", *_EDITS):
            return
        body = event.response_object
        handler = self._handlers.get((about.api_group, about.resource), self._add_controller)
        answer = _Answer(event, about, body)
        if not body:
            self._report_missing(answer, found)
            return
        generic = decode_object(body, AnyObject)
        if generic is None or generic.items is None:
            handler(answer, found)
            return
        kind = generic.kind.removesuffix("List")  # its members do not say theirs
        for one in generic.items:
            member = msgspec.structs.replace(
                answer, body=one, kind=kind, api_version=generic.api_version
            )
            handler(member, found)

    def _report_missing(self, answer: _Answer, found: Observed) -> None:
        """Say once for each kind of object that the log has no answers with it."""
        resource = f"{answer.about.resource}.{answer.about.api_group}".rstrip(".")
        truncated = answer.event.annotations.get(TRUNCATED) == "true"
        known = (answer.about.api_group, answer.about.resource) in self._handlers
        if answer.event.verb == "deletecollection" or not (known or truncated):
            return
        if truncated:
            why = "the API server truncates large audit events: --audit-log-truncate-enabled"
        elif resource in self.state.gaps:
            return
        else:
            why = "the audit policy does not log the answer (level RequestResponse)"
            self.state.gaps.append(resource)
        what = f"{answer.event.verb} {resource} {answer.about.namespace}/{answer.about.name}"
        self.add_gap(answer.at, what, why, found)

    # -- by kind

    def _add_pod(self, answer: _Answer, found: Observed) -> None:
        pod = decode_object(answer.body, Pod)
        if pod is None or not _is_named(pod.metadata):
            return
        event, about = answer.event, answer.about
        own = object_uid(pod.metadata.uid)
        if own is None:
            return
        uid = self._pod_uid(own, pod, event)
        removed = is_removed(pod.metadata, deleted=answer.deletes)
        found.events += describe_pod(
            uid,
            pod,
            at=answer.at,
            agent=self._creator(own, event, removed=removed),
            removed=removed,
            patterns=self._patterns,
        )
        edits = event.verb in ("update", "patch") and not event.created
        if edits and about.subresource in _EDITS and event.is_by_hand:
            named = msgspec.structs.replace(about, name=pod.metadata.name)
            found.events += requests.describe_touch(event, named, _EDITS[about.subresource])

    def _pod_uid(self, own: Uid, pod: Pod, event: AuditEvent) -> Uid:
        """A static Pod is known on its node by another uid, which an annotation has. Every user
        may write that annotation: it counts if the node itself made the object."""
        mirrored = object_uid((pod.metadata.annotations or {}).get(MIRROR, ""))
        node = f"system:node:{pod.spec.get('nodeName')}"
        by_node = event.user.username == node and "system:nodes" in event.user.groups
        if event.created and mirrored is not None and by_node:
            remember(self.state.mirrors, own, mirrored)
        return self.state.mirrors.get(own, own)

    def _add_config_map(self, answer: _Answer, found: Observed) -> None:
        one = decode_object(answer.body, ConfigMap)
        if one is None or (answer.deletes and not one.metadata.name):
            return
        change = requests.describe_config_map(answer.event, answer.about, one)
        found.events += change.events
        found.contents += change.contents

    def _add_claim(self, answer: _Answer, found: Observed) -> None:
        claim = decode_object(answer.body, Claim)
        uid = None if claim is None else object_uid(claim.metadata.uid)
        if claim is None or uid is None:
            return
        found.events += claims.describe_claim(
            self.state,
            uid,
            claim,
            at=answer.at,
            agent=answer.event.agent if answer.event.created else "",
            removed=is_removed(claim.metadata, deleted=answer.deletes),
        )

    def _add_volume(self, answer: _Answer, found: Observed) -> None:
        volume = decode_object(answer.body, Volume)
        if volume is not None and not answer.deletes:
            found.events += claims.describe_volume(self.state, volume)

    def _add_service(self, answer: _Answer, found: Observed) -> None:
        service = decode_object(answer.body, Service)
        uid = self._add_controller(answer, found)
        if service is not None and uid is not None:
            found.events += controllers.describe_service_addresses(uid, service, at=answer.at)

    def _add_endpoints(self, answer: _Answer, found: Observed) -> None:
        if answer.deletes:
            removed = decode_object(answer.body, Removed) or Removed()
            uid = removed.details.uid or removed.metadata.uid
            found.events += endpoints.describe_removal(self.state, uid, at=answer.at)
        elif (listed := decode_object(answer.body, EndpointSlice)) is not None:
            found.events += endpoints.describe_endpoints(self.state, listed, at=answer.at)

    def _add_job(self, answer: _Answer, found: Observed) -> None:
        job = decode_object(answer.body, Job)
        uid = self._add_controller(answer, found)
        if job is not None and uid is not None:
            found.events += controllers.describe_job_end(uid, job)

    def _add_controller(self, answer: _Answer, found: Observed) -> Uid | None:
        event = answer.event
        one = decode_object(answer.body, AnyObject)
        if one is None or not _is_named(one.metadata):
            return None
        uid = object_uid(one.metadata.uid)
        if uid is None:
            return None
        if answer.kind:
            kind, version = answer.kind, answer.api_version
            one = msgspec.structs.replace(one, kind=kind, api_version=version)
        removed = is_removed(one.metadata, deleted=answer.deletes)
        creator = self._creator(uid, event, removed=removed)
        found.events += controllers.describe_controller(
            uid, one, at=answer.at, agent=creator, removed=removed
        )
        edits = event.verb in ("update", "patch") and not event.created
        if edits and not answer.about.subresource and event.is_by_hand:
            named = msgspec.structs.replace(answer.about, name=one.metadata.name)
            found.events += requests.describe_edit(event, named, uid)
        return uid

    def _creator(self, uid: Uid, event: AuditEvent, *, removed: bool) -> str | None:
        """Who created the object; known if its creation was seen."""
        if event.created and event.agent:
            remember(self.state.creators, uid, event.agent)
        if removed:
            return self.state.creators.pop(uid, None)
        return self.state.creators.get(uid)


class _Answer(msgspec.Struct, frozen=True):
    """An object in the answer to a request."""

    event: AuditEvent
    about: ObjectReference
    body: msgspec.Raw
    kind: str = ""
    api_version: str = ""
    """Of the members of a list."""

    @property
    def at(self) -> int:
        return to_nanoseconds(self.event.request_received_timestamp)

    @property
    def deletes(self) -> bool:
        return self.event.verb in ("delete", "deletecollection")


def _is_named(about: Metadata) -> bool:
    return is_name(about.name) and is_name(about.namespace)


def fold_all(
    events: Sequence[AuditEvent], state: FoldState, *, source: str = "audit.log"
) -> Observed:
    """Fold events that are all there."""
    fold, found = AuditFold(state, source=source), Observed()
    for event in events:
        fold.add(event, found)
    return found
