"""Make it so: what was decided is compared with what is there, and the difference carried out.

It can be called at any time for any resource and is done when there is no difference; what
triggered it does not matter. In a steady state it reads what was seen, and writes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from lightkube.core.exceptions import ApiError

from clew.kube.client import Changed, Client, Taken
from clew.kube.cluster_cache import Seen
from clew.kube.controller import event_relay, status_reasons
from clew.kube.controller.metrics import Metrics
from clew.kube.controller.model import DIGEST, Decision, World, child_of
from clew.kube.controller.options import Options
from clew.kube.namespaces import Namespaces
from clew.kube.objects import (
    Json,
    Key,
    Object,
    annotations_of,
    controller_of,
    is_leaving,
    name_of,
    namespace_of,
    uid_of,
    written,
)
from clew.kube.resources import notebooks, tensorboards, viewers

_LOG = logging.getLogger("clew.operator")

Decide = Callable[[Object, World, Options], Decision]
DECIDE: Mapping[str, Decide] = {
    "Notebook": notebooks.decide,
    "Tensorboard": tensorboards.decide,
    "PVCViewer": viewers.decide,
}


class Reconciler:
    def __init__(self, client: Client, seen: Seen, options: Options, metrics: Metrics) -> None:
        self._client = client
        self._seen = seen
        self._options = options
        self._metrics = metrics
        self._namespaces = Namespaces(client)
        self._settled: dict[str, int] = {}
        """Children that somebody else wrote to without a difference, with their generation then."""
        self._said: dict[Key, tuple[str, Json]] = {}
        """The status that was written last, and to which version of the resource."""
        self._reissued: dict[Key, dict[str, int]] = {}
        """Events that were written; like the status, they are seen only a moment later."""

    async def reconcile(self, key: Key) -> None:
        resource = self._seen.resource(key)
        if resource is None or is_leaving(resource):
            self._said.pop(key, None)
            self._reissued.pop(key, None)
            return  # its children go with it: Kubernetes sees to that
        restricted = await self._namespaces.enforces_restricted(key.namespace)
        world = self._seen.world(resource, datetime.now(UTC), restricted=restricted)
        decision = DECIDE[key.kind](resource, world, self._options)
        try:
            made = [await self._make(resource, child, world) for child in decision.children]
        except ApiError as error:
            if error.status.code in (403, 422):
                await self._say(key, resource, _refused(resource, decision.status, error, world))
            raise
        if any(made):
            return  # they will be seen, and then all that follows is decided anew
        for pod in decision.restart:
            await self._client.delete(Key("Pod", key.namespace, name_of(pod)))
        if decision.annotations:
            await self._client.annotate(resource, decision.annotations)
        await self._say(key, resource, decision.status)
        await self._reissue(key, resource, world)

    async def _say(self, key: Key, resource: Object, status: Json) -> None:
        now = (str(resource["metadata"].get("resourceVersion")), status)
        if status != resource.get("status") and self._said.get(key) != now:
            await self._client.write_status(resource, status)
            self._said[key] = now

    async def _reissue(self, key: Key, resource: Object, world: World) -> None:
        written = self._reissued.setdefault(key, {})
        said = self._seen.events((key.namespace, key.kind, key.name))
        for event in event_relay.missing(resource, world, said):
            if written.get(name_of(event), 0) < event["count"]:
                await event_relay.write(self._client, event)
                written[name_of(event)] = event["count"]
        present = {name_of(event_relay.of_child(resource, e, world.now)) for e in world.events}
        self._reissued[key] = {name: n for name, n in written.items() if name in present}

    async def _make(self, resource: Object, child: Json, world: World) -> bool:
        """Whether it was not there, and now is."""
        kind, name = child["kind"], name_of(child)
        found = world.children.get((kind, name))
        if found is None:
            return await self._create(resource, child)
        if found.leaving:
            raise Changed(f"the {kind} {name} is still leaving")
        if found.digest != annotations_of(child)[DIGEST] or (
            found.edited and self._settled.get(found.uid) != found.generation
        ):
            await self._replace(resource, child)
        return False

    async def _create(self, resource: Object, child: Json) -> bool:
        try:
            await self._client.create(child)
        except Taken:
            key = Key(child["kind"], namespace_of(child), name_of(child))
            found = await self._client.get(key)
            if found is None or controller_of(found).get("uid") != uid_of(resource):
                raise Changed(f"the {key.kind} {key.name} is another's") from None
            return False
        except ApiError:
            self._metrics.not_created(resource)
            raise
        if child["kind"] in ("StatefulSet", "Deployment"):
            self._metrics.created(resource)
        return True

    async def _replace(self, resource: Object, child: Json) -> None:
        """Look at it as it is now: what was seen may be old, and others may have written to it."""
        key = Key(child["kind"], namespace_of(child), name_of(child))
        found = await self._client.get(key)
        if found is None or controller_of(found).get("uid") != uid_of(resource):
            raise Changed(f"the {key.kind} {key.name} is not what it was")
        metadata = {k: v for k, v in found["metadata"].items() if k != "managedFields"}
        for field in ("labels", "annotations"):
            metadata[field] = {**(metadata.get(field) or {}), **child["metadata"][field]}
        made = await self._client.replace({**child, "metadata": metadata})
        after = child_of({**made, "kind": key.kind})
        if after.edited:
            self._settled[after.uid] = after.generation
        _LOG.info("changed the %s %s/%s", key.kind, key.namespace, key.name)


def _refused(resource: Object, status: Json, error: ApiError, world: World) -> Json:
    """The status of what Kubernetes will not have made: users see it there, and mend it."""
    why = status_reasons.of_refusal(str(error.status.message), invalid=error.status.code == 422)
    ready = status_reasons.ready(resource, why, written(world.now))
    said = [{**c, **ready} if c.get("type") == "Ready" else c for c in status["conditions"]]
    return {**status, "conditions": said}
