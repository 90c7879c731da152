"""One Pod of a run, from its creation to its end."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from clew.errors import ClewError, NotFound
from clew.kube.backend.rest_client import RestClient
from clew.kube.backend.version_watch import parse_version
from clew.kube.controller.model import Event, parse_event
from clew.kube.objects import Json, Key, dig, is_deleting, uid_of
from clew.kube.pod_status import container_status, ended_state, has_started
from clew.kube.tasks.obstacles import Obstacle, find_obstacle, needs_events
from clew.kube.tasks.outcome import (
    PodOutcome,
    find_outcome,
    is_over,
    never_started,
    outcome_of_deleted,
)
from clew.kube.tasks.placement_reason import asks_for_placement, find_placement_reason
from clew.kube.tasks.pod_creation import PodCreation, Refused
from clew.kube.tasks.pod_log import PodLog
from clew.kube.tasks.task_pod import MAIN, TaskPod

_LOG = logging.getLogger("clew.kube")
STOPPED = "it was stopped"
RUNS = "it runs on"
"""How the sentence begins that says that a Pod runs."""
_LOOK_SECONDS = 5.0
"""How often a Pod that does not start, or is being deleted, is looked at without a change."""
_LOG_SECONDS = 20.0
"""How long the output of a Pod that has ended may bring nothing new."""
_RETRY_SECONDS = 1.0


class PodFollower:
    """For one event loop."""

    def __init__(
        self,
        client: RestClient,
        creation: PodCreation,
        pod: TaskPod,
        *,
        log: Path,
        say: Callable[[str], None],
        created: Callable[[str], None],
        patience: float,
    ) -> None:
        """`created`: called with the name when the Pod exists. `patience`: how many seconds an
        obstacle may last that does not end by itself."""
        self.name = pod.name
        self._client = client
        self._creation = creation
        self._pod = pod
        self._log = PodLog(client, pod.namespace, pod.name, MAIN, log)
        self._on_progress = say
        self._created = created
        self._patience = patience
        self._key = Key("Pod", pod.namespace, pod.name)
        self._latest: Json = {}
        self._gone = False
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._grace = 0
        self._said = ""
        self._log_task: asyncio.Task[None] | None = None
        self._obstacle: tuple[str, float] | None = None
        """The name of the obstacle, and since when."""
        self._events: Sequence[Event] = ()
        self._placement: str | None = None

    # -- what happens to it

    def see(self, pod: Json) -> None:
        """The Pod as the API server describes it; in any order."""
        if self._latest and _version(pod) <= _version(self._latest):
            return
        self._latest = pod
        self._changed.set()

    def see_gone(self, pod: Json | None) -> None:
        if pod is not None and self._latest and uid_of(pod) != uid_of(self._latest):
            return
        self._latest = pod or self._latest
        self._gone = True
        self._changed.set()

    def stop(self, grace: int) -> None:
        self._grace = grace
        self._stopping.set()
        self._changed.set()

    # -- what it does

    async def follow(self) -> PodOutcome:
        try:
            if not await self._create():
                return never_started(STOPPED)
            outcome = await self._await_end()
            await self._note_placement()
            outcome = replace(outcome, placement=self._placement)
            await self._finish_log()
        except Refused as error:
            return never_started(str(error))
        finally:
            if self._log_task is not None:
                self._log_task.cancel()
                await asyncio.wait({self._log_task})
        if self._stopping.is_set() and outcome.problem is not None:
            return replace(outcome, problem=STOPPED, transient=False)
        return outcome

    async def _create(self) -> bool:
        """False if it was stopped, and does not exist."""
        creation = asyncio.create_task(self._creation.create(self._pod, self._say))
        stop = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({creation, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            creation.cancel()  # without effect if it is done
            await asyncio.wait({creation})
        try:
            self.see(await creation)
        except asyncio.CancelledError:
            if not self._stopping.is_set():
                raise
            if not await self._delete(self._grace):
                return False
        self._created(self.name)
        return True

    async def _await_end(self) -> PodOutcome:
        deleted = False
        while True:
            self._changed.clear()
            now = datetime.now(UTC)
            if self._gone:
                return outcome_of_deleted(self._latest, now)
            if self._stopping.is_set() and not deleted:
                deleted = True
                await self._delete(self._grace)
            outcome = find_outcome(self._latest, now)
            # One that is stopped has ended when it is gone, or its node is.
            if outcome and not (self._stopping.is_set() and is_over(self._latest)):
                if not is_over(self._latest):
                    await self._delete(0)
                return outcome
            if failed := await self._check_start():
                await self._delete(0)
                return failed
            await self._await_change()

    async def _await_change(self) -> None:
        waits = self._obstacle is not None or needs_events(self._latest)
        limit = _LOOK_SECONDS if waits or is_deleting(self._latest) else None
        try:
            await asyncio.wait_for(self._changed.wait(), limit)
        except TimeoutError:
            if needs_events(self._latest):
                await self._read_events()

    async def _check_start(self) -> PodOutcome | None:
        """The outcome, if the Pod is given up."""
        main = container_status(self._latest, MAIN)
        if ended_state(main):
            self._log.end()
        if has_started(main):
            self._start_log()
            await self._note_placement()
        obstacle = find_obstacle(self._latest, self._events)
        if obstacle is None:
            if has_started(main):
                self._say(f"{RUNS} {dig(self._latest, 'spec', 'nodeName')}")
            self._obstacle = None
            return None
        self._say(obstacle.text)
        if obstacle.hopeless or (obstacle.ends and self._waited(obstacle) > self._patience):
            return never_started(obstacle.text, transient=obstacle.transient)
        return None

    def _waited(self, obstacle: Obstacle) -> float:
        """For how many seconds the Pod has had this obstacle."""
        now = asyncio.get_running_loop().time()
        if self._obstacle is None or self._obstacle[0] != obstacle.name:
            self._obstacle = obstacle.name, now
        return now - self._obstacle[1]

    async def _read_events(self) -> None:
        about = {"involvedObject.uid": uid_of(self._latest)}
        try:
            found = await asyncio.to_thread(
                self._client.list, "Event", self._pod.namespace, fields=about
            )
        except ClewError as error:
            _LOG.info("the events of %s cannot be read: %s", self.name, error)
            return
        self._events = sorted(map(parse_event, found), key=_last_time)

    async def _note_placement(self) -> None:
        """Read why the Pod is on its node. Events are kept for an hour, which a task may outlast,
        so the first look is when it starts."""
        if self._placement is None and asks_for_placement(self._pod):
            await self._read_events()
            self._placement = find_placement_reason(self._events)

    async def _delete(self, grace: int) -> bool:
        """Whether there was one."""
        while True:
            try:
                await asyncio.to_thread(self._client.delete, self._key, grace_seconds=grace)
            except NotFound:
                return False
            except ClewError as error:
                self._say(f"it cannot be removed yet: {error.message}")
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return True

    def _start_log(self) -> None:
        if self._log_task is None:
            self._log_task = asyncio.create_task(self._log.copy())

    async def _finish_log(self) -> None:
        if has_started(container_status(self._latest, MAIN)):
            self._start_log()
        self._log.end()
        if self._log_task is None:
            return
        size = -1
        while not self._log_task.done() and size < self._log.size:
            size = self._log.size
            await asyncio.wait({self._log_task}, timeout=_LOG_SECONDS)
        if not self._log_task.done():
            _LOG.warning("the log of %s is incomplete: its node does not answer", self.name)
        elif (error := self._log_task.exception()) is not None:
            _LOG.error("the log of %s cannot be written", self.name, exc_info=error)

    def _say(self, text: str) -> None:
        if text != self._said:
            self._said = text
            self._on_progress(text)


def _version(pod: Json) -> int:
    return parse_version(str(dig(pod, "metadata", "resourceVersion")))


def _last_time(event: Event) -> datetime:
    return event.last or datetime.min.replace(tzinfo=UTC)
