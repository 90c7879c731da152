"""Compare the desired children and status of a resource with the actual ones, and change those.

A reconciliation may run at any time for any resource, whatever triggered it. In a steady state it
reads only the cache, and writes nothing.
"""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from time import monotonic

from lightkube.core.exceptions import ApiError

from clew.kube.client import AlreadyExists, Client, Conflict
from clew.kube.cluster_cache import ClusterCache
from clew.kube.controller import event_relay, status_reasons
from clew.kube.controller.metrics import Metrics
from clew.kube.controller.model import DIGEST, ClusterState, Decision, child_of
from clew.kube.controller.options import Options
from clew.kube.controller.status_reasons import Reason
from clew.kube.controller.status_writer import StatusWriter
from clew.kube.objects import (
    Json,
    Key,
    Object,
    annotations_of,
    controller_of,
    format_time,
    is_deleting,
    name_of,
    namespace_of,
    uid_of,
)
from clew.kube.resources import notebooks, tensorboards, viewers
from clew.kube.resources.pod_security import enforces_restricted

_LOG = logging.getLogger("clew.operator")

Decide = Callable[[Object, ClusterState, Options], Decision]
DECIDE: Mapping[str, Decide] = {
    "Notebook": notebooks.decide,
    "Tensorboard": tensorboards.decide,
    "PVCViewer": viewers.decide,
}


class Reconciler:
    def __init__(
        self,
        client: Client,
        cache: ClusterCache,
        options: Options,
        metrics: Metrics,
        namespaces: "Namespaces",
    ) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._metrics = metrics
        self._namespaces = namespaces
        self._statuses = StatusWriter(client)
        self._settled: dict[str, int] = {}
        """By uid: the generation at which a child with foreign edits was found to be as desired."""
        self._relayed: dict[Key, dict[str, int]] = {}
        """The counts of events written; the cache shows them only a moment later, too."""

    async def reconcile(self, key: Key) -> None:
        resource = self._cache.resource(key)
        if resource is None or is_deleting(resource):
            self._statuses.forget(key)
            self._relayed.pop(key, None)
            return  # Kubernetes deletes its children with it
        restricted = await self._namespaces.enforces_restricted(key.namespace)
        cluster = self._cache.state_for(resource, datetime.now(UTC), restricted=restricted)
        decision = DECIDE[key.kind](resource, cluster, self._options)
        try:
            made = [
                await self._ensure_child(resource, child, cluster) for child in decision.children
            ]
        except ApiError as error:
            if error.status.code in (403, 422):
                why = status_reasons.reason_of_refusal(
                    str(error.status.message), invalid=error.status.code == 422
                )
                status = show_refusal(resource, decision.status, why, cluster.now)
                await self._statuses.write(key, resource, status)
            raise
        if any(made):
            return  # the watch will report them, which triggers the next reconciliation
        for pod in decision.restart:
            await self._client.delete(Key("Pod", key.namespace, name_of(pod)))
        if decision.annotations:
            await self._client.annotate(resource, decision.annotations)
        await self._statuses.write(key, resource, decision.status)
        await self._relay_events(key, resource, cluster)

    async def _relay_events(self, key: Key, resource: Object, cluster: ClusterState) -> None:
        written = self._relayed.setdefault(key, {})
        known = self._cache.events((key.namespace, key.kind, key.name))
        for event in event_relay.find_unrelayed_events(resource, cluster, known):
            if written.get(name_of(event), 0) < event["count"]:
                await event_relay.write_event(self._client, event)
                written[name_of(event)] = event["count"]
        present = {
            name_of(event_relay.relay_event(resource, e, cluster.now)) for e in cluster.events
        }
        self._relayed[key] = {name: n for name, n in written.items() if name in present}

    async def _ensure_child(self, resource: Object, child: Json, cluster: ClusterState) -> bool:
        """Create or update it; whether it was created."""
        kind, name = child["kind"], name_of(child)
        found = cluster.children.get((kind, name))
        if found is None:
            return await self._create(resource, child)
        if found.deleting:
            raise Conflict(f"the {kind} {name} is still being deleted")
        if found.digest != annotations_of(child)[DIGEST] or (
            found.edited and self._settled.get(found.uid) != found.generation
        ):
            await self._replace(resource, child)
        return False

    async def _create(self, resource: Object, child: Json) -> bool:
        try:
            await self._client.create(child)
        except AlreadyExists:
            key = Key(child["kind"], namespace_of(child), name_of(child))
            found = await self._client.get(key)
            if found is None or controller_of(found).get("uid") != uid_of(resource):
                raise Conflict(f"the {key.kind} {key.name} belongs to another owner") from None
            return False
        except ApiError:
            self._metrics.not_created(resource)
            raise
        if child["kind"] in ("StatefulSet", "Deployment"):
            self._metrics.created(resource)
        return True

    async def _replace(self, resource: Object, child: Json) -> None:
        """Read the child first: the cache may be out of date, and others may have edited it."""
        key = Key(child["kind"], namespace_of(child), name_of(child))
        found = await self._client.get(key)
        if found is None or controller_of(found).get("uid") != uid_of(resource):
            raise Conflict(f"the {key.kind} {key.name} is gone or belongs to another owner")
        metadata = {k: v for k, v in found["metadata"].items() if k != "managedFields"}
        for field in ("labels", "annotations"):
            metadata[field] = {**(metadata.get(field) or {}), **child["metadata"][field]}
        made = await self._client.replace({**child, "metadata": metadata})
        after = child_of({**made, "kind": key.kind})
        if after.edited:
            self._settled[after.uid] = after.generation
        _LOG.info("changed the %s %s/%s", key.kind, key.namespace, key.name)


def show_refusal(resource: Object, status: Json, why: Reason, now: datetime) -> Json:
    """The status after Kubernetes rejected a child, so that users see why."""
    ready = status_reasons.ready_condition(resource, why, format_time(now))
    conditions = [{**c, **ready} if c.get("type") == "Ready" else c for c in status["conditions"]]
    return {**status, "conditions": conditions}


_CACHE_SECONDS = 10.0


class Namespaces:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, tuple[float, bool]] = {}

    async def enforces_restricted(self, name: str) -> bool:
        known = self._known.get(name)
        if known is not None and monotonic() - known[0] < _CACHE_SECONDS:
            return known[1]
        found = await self._client.get_namespace(name)
        answer = found is not None and enforces_restricted(found)
        self._known[name] = monotonic(), answer
        return answer
