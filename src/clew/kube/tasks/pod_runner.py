"""Run the Pods of one pipeline run: start, follow, stop and remove them.

The runner keeps nothing that the cluster does not have. If its process is killed, the Pods run on;
another runner that starts the same Pods again follows those that exist.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from clew.errors import ClewError, NotFound, Unavailable
from clew.kube.backend.rest_client import RestClient
from clew.kube.objects import Json, Key
from clew.kube.tasks.outcome import PodOutcome, never_started
from clew.kube.tasks.pod_creation import PodCreation
from clew.kube.tasks.pod_follower import PodFollower
from clew.kube.tasks.pod_watch import PodWatch
from clew.kube.tasks.task_pod import RUN_LABEL, TaskPod

_LOG = logging.getLogger("clew.kube")
_REQUESTS = 16
"""How many requests are made at once."""
_CLOSE_SECONDS = 10.0
_RETRY_SECONDS = 1.0
PATIENCE = 120.0
GRACE_SECONDS = 2

OnEnd = Callable[[PodOutcome], None]
OnProgress = Callable[[str], None]


class PodRunner:
    """Safe to use from any thread. One thread follows all Pods, and makes the calls."""

    def __init__(
        self, client: RestClient, namespace: str, run: str, *, patience: float = PATIENCE
    ) -> None:
        """`run`: the uid of the run. `patience`: how many seconds a Pod may be kept from starting
        by something that does not end by itself, such as a Secret that does not exist."""
        self._client = client
        self._namespace = namespace
        self._run = run
        self._patience = patience
        self._followers: dict[str, PodFollower] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._removals: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(_REQUESTS, "clew-pods"))
        self._creation = PodCreation(client)
        self._watch = PodWatch(
            client, namespace, {RUN_LABEL: run}, changed=self._see, gone=self._see_gone
        )
        self._thread = threading.Thread(target=self._serve, name="clew-pods", daemon=True)
        self._thread.start()

    def start(
        self,
        pod: TaskPod,
        *,
        log: Path,
        on_end: OnEnd,
        on_progress: OnProgress = lambda _: None,
    ) -> None:
        """Start a Pod, or follow the one that this run has started under this name.

        `log`: the file that gets the output of `main`, from its beginning. `on_end` is called once,
        when the file is complete. `on_progress` is called with a sentence when it changes what the
        Pod waits for, and when it runs. Both are called from the runner's thread, and must not
        block.
        """
        if pod.namespace != self._namespace or pod.run != self._run:
            raise ValueError("the Pod belongs to another run")
        follower = PodFollower(
            self._client,
            self._creation,
            pod,
            log=log,
            say=on_progress,
            created=self._watch.expect,
            patience=self._patience,
        )
        self._loop.call_soon_threadsafe(self._begin, follower, on_end)

    def stop(self, name: str, grace_seconds: int = GRACE_SECONDS) -> None:
        """Ask a Pod to end, and kill it after some seconds; `on_end` is called when it is gone."""
        self._loop.call_soon_threadsafe(self._stop, name, grace_seconds)

    def remove(self, name: str) -> None:
        """Delete a Pod that has ended, when its result is recorded. Nothing of it runs, so it goes
        at once: its node may not have reported yet that all is cleaned up."""
        self._loop.call_soon_threadsafe(lambda: self._keep(self._remove(name), self._removals))

    def close(self) -> None:
        """Follow no Pod any more; those that run, run on."""
        done: Future[None] = asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop)
        done.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    # -- in the runner's thread

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        watching = self._loop.create_task(self._watch.run())
        try:
            self._loop.run_forever()
        finally:
            watching.cancel()
            self._loop.run_until_complete(asyncio.gather(watching, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def _begin(self, follower: PodFollower, on_end: OnEnd) -> None:
        self._followers[follower.name] = follower
        self._keep(self._follow(follower, on_end), self._tasks)

    def _keep(self, work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
        task = self._loop.create_task(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def _follow(self, follower: PodFollower, on_end: OnEnd) -> None:
        try:
            outcome = await follower.follow()
        except Exception as error:  # who waits for the end must learn that it is not known
            _LOG.exception("cannot follow the Pod %s", follower.name)
            outcome = never_started(f"Clew cannot follow its Pod: {error!r}")
        finally:
            self._followers.pop(follower.name, None)
        self._creation.make_room()
        try:
            on_end(outcome)
        except Exception:
            _LOG.exception("the end of the Pod %s cannot be reported", follower.name)

    def _see(self, pod: Json) -> None:
        if follower := self._followers.get(pod["metadata"]["name"]):
            follower.see(pod)

    def _see_gone(self, name: str, pod: Json | None) -> None:
        if follower := self._followers.get(name):
            follower.see_gone(pod)

    def _stop(self, name: str, grace: int) -> None:
        if follower := self._followers.get(name):
            follower.stop(grace)

    async def _remove(self, name: str) -> None:
        key = Key("Pod", self._namespace, name)
        while True:
            try:
                await asyncio.to_thread(self._client.delete, key, grace_seconds=0)
            except Unavailable:
                await asyncio.sleep(_RETRY_SECONDS)
            except NotFound:
                return
            except ClewError as error:
                _LOG.warning("the Pod %s cannot be removed: %s", name, error)
                return
            else:
                return

    async def _shut_down(self) -> None:
        for task in self._tasks:
            task.cancel()
        if removals := set(self._removals):
            await asyncio.wait(removals, timeout=_CLOSE_SECONDS)
        for task in self._removals:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._removals, return_exceptions=True)
