"""Ask servers when they were last used, and those who saw their traffic.

Jupyter is asked for its kernels, its terminals and the last call of its API, in a way that does not
count as use. What answers otherwise is no Jupyter and goes by its traffic; what does not answer, or
not to us, is unknown, whatever its traffic: it may be busy with just that.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

import httpx2
from lightkube.config import client_adapter
from lightkube.config.kubeconfig import KubeConfig

from clew.kube import access_tokens
from clew.kube.cluster_cache import concerned
from clew.kube.controller.options import Culling, Options
from clew.kube.culling.idleness import Activity
from clew.kube.objects import Key, Object, annotations_of, moment, name_of, namespace_of
from clew.kube.resources.notebooks import HEADERS, REWRITE, headers, prefix

_LOG = logging.getLogger("clew.operator")
_PATIENCE = httpx2.Timeout(10.0)
_SECONDS = 20.0
"""In which a notebook must have answered, so that none keeps the others from being looked at."""
_LARGEST = 1 << 20
"""Bytes of an answer: a notebook's author decides what it says, and how much."""
_NOT_NOW = {401, 403, 407, 408, 429}
"""Answers of a mesh, or of the server itself, that do not tell what it does."""

Traffic = Mapping[Key, datetime]
"""When bytes were last seen on the way to a resource."""
Source = Callable[[], Awaitable[Traffic]]


class Unknown(Exception):
    """Nobody can say."""


def told_by(notebook: Object) -> Mapping[str, str]:
    """The headers that a notebook wants on each request: without them it may refuse."""
    return headers(annotations_of(notebook).get(HEADERS))


class Asking:
    """`address` tells where the Service of a notebook is reached, `told` the headers to send."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        address: Callable[[Object], str],
        sources: Sequence[Source] = (),
        told: Callable[[Object], Mapping[str, str]] = told_by,
    ) -> None:
        self._http = http
        self._address = address
        self._told = told
        self._sources = sources

    async def close(self) -> None:
        await self._http.aclose()

    async def traffic(self) -> Traffic | None:
        """Of all resources, from everybody who saw any; None: nobody looks, or somebody cannot."""
        if not self._sources:
            return None
        together: dict[Key, datetime] = {}
        for source in self._sources:
            try:
                found = await source()
            except Exception as error:
                _LOG.warning("traffic is not known: %s", error)
                return None
            for key, time in found.items():
                together[key] = max(time, together.get(key, time))
        return together

    async def activity(self, resource: Object, traffic: Traffic | None) -> Activity | None:
        key = Key(resource["kind"], namespace_of(resource), name_of(resource))
        seen = Activity(last=traffic.get(key)) if traffic is not None else None
        if resource["kind"] != "Notebook":
            return seen
        try:
            found = await self._jupyter(resource)
        except Unknown:
            return None
        if found is None:
            return seen
        last = max(t for t in (found.last, seen and seen.last, _LONG_AGO) if t)
        return Activity(found.busy, last)

    async def _jupyter(self, notebook: Object) -> Activity | None:
        """None: what answers is no Jupyter."""
        kernels, terminals, status = await asyncio.gather(
            self._get(notebook, "api/kernels"),
            self._get(notebook, "api/terminals"),
            self._get(notebook, "api/status"),
        )
        if not isinstance(kernels, list):
            return None
        return of_jupyter(kernels, terminals, status)

    async def _get(self, notebook: Object, path: str) -> Any:
        """The JSON that is answered; None when it is something else."""
        base = (annotations_of(notebook).get(REWRITE) or prefix(notebook)).strip("/")
        if {".", ".."} & set(base.split("/")) or {"?", "#"} & set(base):
            raise Unknown  # it would lead to something else than this notebook
        place = f"{self._address(notebook)}/{base}".rstrip("/")
        try:
            async with (
                asyncio.timeout(_SECONDS),
                self._http.stream(
                    "GET",
                    f"{place}/{path}",
                    params={"no_track_activity": "1"},
                    headers={**self._told(notebook), "Accept-Encoding": "identity"},
                ) as answer,
            ):
                if answer.status_code >= 500 or answer.status_code in _NOT_NOW:
                    raise Unknown
                body = await _read(answer)
        except (httpx2.HTTPError, UnicodeError, TimeoutError) as error:
            raise Unknown from error  # UnicodeError: a header may have any letters
        try:
            return json.loads(body) if answer.status_code == 200 else None
        except (ValueError, RecursionError):
            return None


async def _read(answer: httpx2.Response) -> bytes:
    """The body as it was sent: nothing is decompressed."""
    body = bytearray()
    async for piece in answer.aiter_raw():
        body += piece
        if len(body) > _LARGEST:
            raise Unknown
    return bytes(body)


def asking(options: Options, culling: Culling, sources: Sequence[Source]) -> Asking:
    """By the names of Services, or through the API server as from outside of the cluster."""

    def own(notebook: Object) -> dict[str, str]:
        return access_tokens.headers_for(notebook, options.access_key)

    if not culling.through_api:
        domain = options.cluster_domain
        return Asking(
            httpx2.AsyncClient(timeout=_PATIENCE),
            lambda found: f"http://{name_of(found)}.{namespace_of(found)}.svc.{domain}",
            sources,
            told=lambda found: {**told_by(found), **own(found)},
        )
    config = KubeConfig.from_env().get()
    assert config is not None
    given = client_adapter.ConnectionParams(timeout=_PATIENCE)
    return Asking(
        client_adapter.AsyncClient(config, given),
        lambda found: (
            f"/api/v1/namespaces/{namespace_of(found)}/services/{name_of(found)}:80/proxy"
        ),
        sources,
        told=own,  # no others: the API server would take some for its own, such as Authorization
    )


_LONG_AGO = datetime.fromtimestamp(0, UTC)


def of_jupyter(kernels: list[Any], terminals: Any, status: Any) -> Activity:
    """What Jupyter's answers say: a kernel that is not idle is busy; all else has a time."""
    found = [k for k in kernels if isinstance(k, Mapping)]
    others = [t for t in terminals if isinstance(t, Mapping)] if isinstance(terminals, list) else []
    whole = [status] if isinstance(status, Mapping) else []
    times = [moment(str(each.get("last_activity") or "")) for each in [*found, *others, *whole]]
    return Activity(
        busy=any(k.get("execution_state") != "idle" for k in found),
        last=max((time for time in times if time), default=None),
    )


_OF = "destination_service_namespace, destination_service_name"
_USERS = '{reporter!="destination",source_workload!="clew-operator"}'
"""What a server's own proxy counts has our asking in it, and whoever else asks from outside."""
_COUNTERS = ("istio_requests_total", "istio_tcp_received_bytes_total")
_COUNTED = f'count(last_over_time({{__name__=~"{"|".join(_COUNTERS)}"}}[10m]))'
"""A row of no Service: somebody counts."""


def istio_traffic(
    prometheus: str, idle: timedelta, *, late: timedelta = timedelta(seconds=15)
) -> Source:
    """What Istio counted, by a Prometheus: whatever was used since it was asked last is in use now.

    The first question is about all the time that something may be idle: nobody may have looked
    meanwhile. What is counted is known only after `late`.
    """
    asked: float | None = None

    async def source() -> Traffic:
        nonlocal asked
        began = monotonic()
        since = timedelta(seconds=began - asked) if asked is not None else idle
        query = " or ".join([_COUNTED, *(_moved(counter, since + late) for counter in _COUNTERS)])
        async with httpx2.AsyncClient(timeout=_PATIENCE) as http:
            address = f"{prometheus.rstrip('/')}/api/v1/query"
            answer = await http.get(address, params={"query": query})
            answer.raise_for_status()
            found = [row["metric"] for row in answer.json()["data"]["result"]]
        if {} not in found:
            raise Unknown(f"{prometheus} has no metrics of Istio's")
        asked, now = began, datetime.now(UTC)
        return {key: now for metric in found if metric for key in _behind(metric)}

    return source


def _moved(counter: str, since: timedelta) -> str:
    """Which Services have a counter that is not what it was: a new one has come from nothing, and
    one that began anew is in use when it counts again.

    That takes no two samples within the time, as a rate would, so it does not matter how often
    they are taken. One that could not be taken makes no counter new.
    """
    now, ago = f"{counter}{_USERS}", since // timedelta(milliseconds=1)
    then = f"last_over_time({now}[10m] offset {ago}ms)"
    return f"max by ({_OF}) (({now} unless ({now} == {then})) > 0)"


def proxied_traffic(server: str, token: Callable[[], str]) -> Source:
    """What passed through `clew server` and all that share its database. The token is asked for
    each time: it may be made later than we are."""
    kinds = {"notebook": "Notebook", "tensorboard": "Tensorboard", "pvcviewer": "PVCViewer"}

    async def source() -> Traffic:
        async with httpx2.AsyncClient(timeout=_PATIENCE) as http:
            answer = await http.get(
                f"{server.rstrip('/')}/api/v1/traffic",
                headers={"Authorization": f"Bearer {token()}"},
            )
            answer.raise_for_status()
            return {
                Key(kinds[row["kind"]], row["namespace"], row["name"]): last
                for row in answer.json()["traffic"]
                if (last := moment(row["last_activity"]))
            }

    return source


def _behind(metric: Mapping[str, str]) -> list[Key]:
    """Which resources a Service may belong to."""
    namespace = metric.get("destination_service_namespace", "")
    return list(concerned(namespace, "Service", metric.get("destination_service_name", "")))
