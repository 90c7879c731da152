"""Create the Pods of a run, also where a quota leaves no room yet.

A process that was killed after it created a Pod creates it again under the same name. The API
server answers that the Pod exists, and the process follows that Pod.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable
from enum import Enum, auto

from clew.errors import ClewError, Conflict, Exists, NotAllowed, NotFound, Unavailable
from clew.kube.backend.rest_client import RestClient
from clew.kube.objects import Json, Key, labels_of
from clew.kube.quantities import InvalidQuantity, parse_quantity
from clew.kube.tasks.manifest import build_manifest
from clew.kube.tasks.task_pod import RUN_LABEL, TaskPod

_ROOM_SECONDS = 2.0
"""How often a Pod tries again that a quota refused, unless another Pod of the run ends before."""
_TURN = 3
"""After so many tries, the next Pod has its turn: a smaller one may have room."""
_RETRY_SECONDS = 1.0

Say = Callable[[str], None]


class Refused(Exception):
    """The Pod cannot be created; the message says why."""


class Reaction(Enum):
    AGAIN = auto()
    WAIT = auto()
    WAIT_FOR_ROOM = auto()
    RESTRICT = auto()
    """Create it with the settings of the Pod Security Standard `restricted`."""
    FAIL = auto()


class PodCreation:
    """For one event loop."""

    def __init__(self, client: RestClient) -> None:
        self._client = client
        self._turn = asyncio.Lock()
        self._room = asyncio.Event()
        self._restricted = False

    def make_room(self) -> None:
        """Call it when a Pod has ended."""
        self._room.set()

    async def create(self, pod: TaskPod, say: Say) -> Json:
        """The Pod, also if it was there already; Refused if there cannot be one.

        If this is cancelled, no request is under way, but the Pod may exist.
        """
        while True:
            error = await self._try(pod)
            if not isinstance(error, ClewError):
                return error
            if self._react(error, say) is Reaction.WAIT_FOR_ROOM:
                async with self._turn:
                    found = await self._wait_for_room(pod, say)
                if found is not None:
                    return found
            else:
                await asyncio.sleep(_RETRY_SECONDS if isinstance(error, Unavailable) else 0)

    async def _wait_for_room(self, pod: TaskPod, say: Say) -> Json | None:
        for _ in range(_TURN):
            self._room.clear()
            error = await self._try(pod)
            if not isinstance(error, ClewError):
                return error
            if self._react(error, say) is not Reaction.WAIT_FOR_ROOM:
                return None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._room.wait(), _ROOM_SECONDS)
        return None

    def _react(self, error: ClewError, say: Say) -> Reaction:
        """Refused if it cannot be created."""
        reaction = choose_reaction(error, restricted=self._restricted)
        if reaction is Reaction.FAIL:
            raise Refused(error.message) from error
        if reaction is Reaction.RESTRICT:
            self._restricted = True
        elif reaction is not Reaction.AGAIN:
            say(f"it waits: {error.message}")
        return reaction

    async def _try(self, pod: TaskPod) -> Json | ClewError:
        manifest = build_manifest(pod, restricted=self._restricted)
        request = asyncio.create_task(asyncio.to_thread(self._create_or_adopt, pod, manifest))
        try:
            return await asyncio.shield(request)
        except asyncio.CancelledError:
            await asyncio.wait({request})
            raise

    def _create_or_adopt(self, pod: TaskPod, manifest: Json) -> Json | ClewError:
        try:
            return self._client.create(manifest)
        except Exists as error:
            return self._adopt(pod, error)
        except ClewError as error:
            return error

    def _adopt(self, pod: TaskPod, error: Exists) -> Json | ClewError:
        try:
            found = self._client.get(Key("Pod", pod.namespace, pod.name))
        except NotFound:
            return Conflict(error.message)  # it has just gone
        except ClewError as failure:
            return failure
        if labels_of(found).get(RUN_LABEL) != pod.run:
            return Exists(f"there is a Pod {pod.name} that this run has not made")
        return found


def choose_reaction(error: ClewError, *, restricted: bool) -> Reaction:
    """What to do about a Pod that was not created. Pure."""
    if isinstance(error, Unavailable):
        return Reaction.WAIT
    if isinstance(error, Conflict):  # many Pods at once change one quota
        return Reaction.AGAIN
    if isinstance(error, NotAllowed):
        if "exceeded quota" in error.message:
            return Reaction.WAIT_FOR_ROOM if fits_quota(error.message) else Reaction.FAIL
        if 'violates PodSecurity "restricted' in error.message and not restricted:
            return Reaction.RESTRICT
        if re.search("service ?account .*not found", error.message):
            return Reaction.WAIT  # a new namespace has none for a moment
    return Reaction.FAIL


def fits_quota(message: str) -> bool:
    """Whether a Pod would fit if nothing else ran: what it requests is within the limits that
    Kubernetes names. True if that cannot be read."""
    found = re.search(r"requested: (\S+), used: \S+, limited: (\S+)", message)
    if found is None:
        return True
    requested, limits = (
        dict(one.split("=", 1) for one in text.split(",") if "=" in one) for text in found.groups()
    )
    try:
        return all(
            parse_quantity(requested[name]).value <= parse_quantity(limit).value
            for name, limit in limits.items()
            if name in requested
        )
    except InvalidQuantity:
        return True
