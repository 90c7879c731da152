"""Carry out what `training` decides: create, write the status, delete, write events.

In this order, because the status counts the failures of the Pods that are deleted then. The Pods of
a job are created at the same time, not one after the other. A killed operator leaves a part of this
undone; the next one decides again from what there is.
"""

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Sequence
from datetime import UTC, datetime

import httpx2
from lightkube.core.exceptions import ApiError

from clew.kube.client import AlreadyExists, Client, Conflict
from clew.kube.cluster_cache import ClusterCache
from clew.kube.controller import event_relay, status_reasons
from clew.kube.controller.metrics import Metrics
from clew.kube.controller.model import ClusterState
from clew.kube.controller.options import Options
from clew.kube.controller.reconciler import Namespaces, show_refusal
from clew.kube.controller.status_reasons import Reason
from clew.kube.controller.status_writer import StatusWriter
from clew.kube.controller.work_queue import WorkQueue
from clew.kube.objects import (
    Json,
    Key,
    Object,
    controller_of,
    is_deleting,
    name_of,
    namespace_of,
    uid_of,
)
from clew.kube.training.job_events import RECENT
from clew.kube.training.lifecycle import decide
from clew.kube.training.model import JobDecision, JobEvent, JobState

_LOG = logging.getLogger("clew.operator")
CLOSE_SECONDS = 2.0
CONCURRENCY = 16
"""Requests of one job at the same time: as many as the API server answers at once."""


class TrainingReconciler:
    def __init__(
        self,
        client: Client,
        cache: ClusterCache,
        options: Options,
        metrics: Metrics,
        namespaces: Namespaces,
        queue: WorkQueue,
    ) -> None:
        self._client = client
        self._cache = cache
        self._options = options
        self._metrics = metrics
        self._namespaces = namespaces
        self._queue = queue
        self._statuses = StatusWriter(client)
        self._told: dict[Key, dict[str, tuple[int, datetime]]] = {}
        """By job: the events that were written, how often they had occurred, and when."""
        self._writing: set[asyncio.Task[None]] = set()

    async def reconcile(self, key: Key) -> None:
        job = self._cache.resource(key)
        if job is None or is_deleting(job):
            self._forget(key)
            return  # Kubernetes deletes its children with it
        restricted = await self._namespaces.enforces_restricted(key.namespace)
        state = self._cache.job_state(job, datetime.now(UTC), restricted=restricted)
        decision = decide(job, state, self._options)
        created, refused = await self._create(job, decision)
        status = decision.status
        if refused:
            status = show_refusal(job, status, _reason_of(refused[0]), state.now)
        if await self._statuses.write(key, job, status):
            self._metrics.job_changed(job, status)
        deleted = await self._delete(key, job, decision)
        failed = [_event_of_refusal(each, state.now) for each in refused]
        self._tell(key, job, state, [*decision.events, *created, *failed, *deleted])
        again = decision.recheck
        self._queue.wake(key, (again - state.now).total_seconds() if again else None)
        if refused:
            raise refused[0]  # so that it is tried again, later and later

    def _forget(self, key: Key) -> None:
        self._statuses.forget(key)
        self._told.pop(key, None)
        self._queue.wake(key, None)

    async def _create(
        self, job: Object, decision: JobDecision
    ) -> tuple[list[JobEvent], list[Exception]]:
        """The events of what was created, and why something was not."""
        created: list[JobEvent] = []
        refused: list[Exception] = []

        async def create(made: Json) -> None:
            try:
                found = await self._create_one(job, made)
            except (ApiError, Conflict) as error:
                refused.append(error)
            else:
                if found:
                    created.append(_event("SuccessfulCreate", found["kind"], found))

        await _in_parallel(map(create, decision.others))
        await _in_parallel(map(create, (*decision.pods, *decision.services)))
        return created, refused

    async def _create_one(self, job: Object, made: Json) -> Json | None:
        """None: it had been created before, and the cache does not show it yet."""
        key = Key(made["kind"], namespace_of(made), name_of(made))
        try:
            return {**await self._client.create(made), "kind": key.kind}
        except AlreadyExists:
            found = await self._client.get(key)
            if found is None or is_deleting(found):
                raise Conflict(f"the {key.kind} {key.name} is still being deleted") from None
            if controller_of(found).get("uid") != uid_of(job):
                raise NameInUse(key) from None
            return None

    async def _delete(self, key: Key, job: Object, decision: JobDecision) -> list[JobEvent]:
        async def delete(kind: str, name: str, uid: str) -> None:
            await self._client.delete_exactly(Key(kind, key.namespace, name), uid)

        going = [("Pod", each.name, each.uid) for each in decision.delete_pods]
        going += [(each.kind, each.name, each.uid) for each in decision.delete_children]
        if decision.delete_job:
            going = [(key.kind, key.name, uid_of(job))]
        await _in_parallel(delete(*each) for each in going)
        return [
            _event("SuccessfulDelete", kind, {"metadata": {"name": name, "uid": uid}})
            for kind, name, uid in going
            if kind in ("Pod", "Service")
        ]

    def _tell(self, key: Key, job: Object, state: JobState, events: Sequence[JobEvent]) -> None:
        """Write the events that are new, and repeat warnings about Pods; nothing waits for it."""
        told = self._told.setdefault(key, {})
        known = self._cache.events((key.namespace, key.kind, key.name))
        counts = {event.name: event.count for event in known}
        warnings = [each for each in state.events if each.warning]
        made = [_make_event(job, each) for each in events]
        made += event_relay.find_unrelayed_events(
            job, ClusterState(state.now, events=warnings), known
        )
        new = {
            name_of(each): each
            for each in made
            if max(counts.get(name_of(each), 0), told.get(name_of(each), (0,))[0]) < each["count"]
        }
        long_ago = state.now - 2 * RECENT
        kept = {name: each for name, each in told.items() if each[1] > long_ago}
        self._told[key] = kept | {name: (e["count"], state.now) for name, e in new.items()}
        if new:
            task = asyncio.create_task(self._write(key, list(new.values())))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    async def _write(self, key: Key, events: Sequence[Json]) -> None:
        async def write(event: Json) -> None:
            try:
                await event_relay.write_event(self._client, event)
            except (ApiError, httpx2.HTTPError) as error:
                self._told.get(key, {}).pop(name_of(event), None)  # the next time, then
                _LOG.warning("cannot write an event of %s %s/%s: %s", *key, error)

        await _in_parallel(map(write, events))

    async def close(self) -> None:
        """Write the events that wait, unless that takes long."""
        if self._writing:
            await asyncio.wait(self._writing, timeout=CLOSE_SECONDS)


class NameInUse(Conflict):
    """The name of a child is taken by an object of another owner."""

    def __init__(self, key: Key) -> None:
        super().__init__(f"the {key.kind} {key.name} belongs to another owner")
        self.key = key


async def _in_parallel(work: Iterable[Awaitable[None]]) -> None:
    slots = asyncio.Semaphore(CONCURRENCY)

    async def run(one: Awaitable[None]) -> None:
        async with slots:
            await one

    await asyncio.gather(*map(run, work))


def _reason_of(error: Exception) -> Reason:
    if isinstance(error, NameInUse):
        text = f"Another owner already has the {error.key.kind} {error.key.name}."
        return Reason("NameInUse", f"{text} Choose another name.")
    if isinstance(error, ApiError):
        return status_reasons.reason_of_refusal(
            str(error.status.message), invalid=error.status.code == 422
        )
    return Reason("Starting", f"It waits: {error}.")


def _event(reason: str, kind: str, found: Object) -> JobEvent:
    verb = {"SuccessfulCreate": "Created", "SuccessfulDelete": "Deleted"}[reason]
    return JobEvent(
        key=f"{verb} {uid_of(found)}",
        reason=f"{reason}{kind}",
        message=f"{verb} {kind.lower()}: {name_of(found)}",
        at=datetime.now(UTC),
    )


def _event_of_refusal(error: Exception, now: datetime) -> JobEvent:
    text = str(error.status.message) if isinstance(error, ApiError) else str(error)
    kind = error.key.kind if isinstance(error, NameInUse) else "Pod"
    return JobEvent(
        key=f"refused {text}", reason=f"FailedCreate{kind}", message=text, at=now, warning=True
    )


def _make_event(job: Object, event: JobEvent) -> Json:
    return event_relay.make_event(
        job,
        key=event.key,
        warning=event.warning,
        reason=event.reason,
        message=event.message,
        first=event.at,
        last=event.at,
    )
