"""The log of a container: all of it, or what is added to it while its workload exists.

A stream goes on over restarts of the container. Each chunk has a position, after which another
stream, also of another server, can continue.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

from clew.errors import NotFound
from clew.kube.backend.log_positions import LogChunk
from clew.kube.controller.model import is_stopped
from clew.kube.objects import Key, Object, dig, name_of
from clew.workloads.backend import Backend

_RETRY_SECONDS = 1.0


def read_log(backend: Backend, key: Key, container: str) -> str:
    """All of it that is kept. NotFound: nothing runs, or it has no such container."""
    pod = _find_pod(backend, key, container)
    if pod is None:
        raise NotFound(f"{key.name} does not run, so it has no log", hint="start it")
    return backend.read_log(key.namespace, pod, container)


def check_log(backend: Backend, key: Key, container: str) -> None:
    """Check that there may be a log, before it is followed."""
    _find_pod(backend, key, container)


async def follow_log(
    backend: Backend, key: Key, container: str, *, tail: int, after: str | None
) -> AsyncIterator[LogChunk]:
    """The last `tail` lines, or what follows the position `after`; then what is added, until the
    workload is stopped or deleted."""
    while True:
        pod, over = await asyncio.to_thread(_look, backend, key, container)
        if pod is not None:
            chunks = backend.follow_log(key.namespace, pod, container, tail=tail, after=after)
            async with aclosing(chunks) as stream:
                async for chunk in stream:
                    after = chunk.position
                    yield chunk
        if over:
            return
        await asyncio.sleep(_RETRY_SECONDS)


def _look(backend: Backend, key: Key, container: str) -> tuple[str | None, bool]:
    """The Pod to follow, and whether nothing will come after it."""
    try:
        resource = backend.get(key)
        return _find_pod(backend, key, container), is_stopped(resource)
    except NotFound:
        return None, True


def _find_pod(backend: Backend, key: Key, container: str) -> str | None:
    """The newest Pod; None: there is none now."""
    if key.kind == "PersistentVolumeClaim":
        raise NotFound("a volume has no log", hint="see the log of what uses it")
    backend.get(key)
    pods = backend.pods_of(key)
    if not pods:
        return None
    if container not in _containers(pods[-1]):
        names = ", ".join(_containers(pods[-1]))
        raise NotFound(f"{key.name} has no container {container[:100]}", hint=f"one of {names}")
    return name_of(pods[-1])


def _containers(pod: Object) -> list[str]:
    return [
        str(one.get("name"))
        for field in ("initContainers", "containers")
        for one in dig(pod, "spec", field) or ()
    ]
