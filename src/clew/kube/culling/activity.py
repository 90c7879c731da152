"""Find out when servers were last used: from Jupyter itself, and from the traffic to them.

Jupyter is asked for its kernels, its terminals and the last call of its API, by requests that do
not count as use. If the answer is not Jupyter's, only the traffic counts. If a notebook does not
answer, or refuses us, its activity is unknown, whatever its traffic: it may be busy.
"""

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

from clew.kube import workload_tokens
from clew.kube.cluster_cache import list_possible_parents
from clew.kube.controller.options import Culling, Options
from clew.kube.culling.idleness import Activity, parse_jupyter_activity
from clew.kube.objects import Key, Object, annotations_of, name_of, namespace_of, parse_time
from clew.kube.resources.notebooks import HEADERS, REWRITE, parse_headers, path_prefix

_LOG = logging.getLogger("clew.operator")
_TIMEOUT = httpx2.Timeout(10.0)
_TOTAL_SECONDS = 20.0
"""Time limit of one request, so that no notebook delays the check of the others."""
_MAX_BODY = 1 << 20
"""Bytes of a response: they are under the control of the notebook's author."""
_NOT_NOW = {401, 403, 407, 408, 429}
"""Statuses from a service mesh, or from the server, that say nothing about its activity."""

Traffic = Mapping[Key, datetime]
"""The times at which bytes were last sent to or from each resource."""
TrafficSource = Callable[[], Awaitable[Traffic]]


class ActivityUnknown(Exception):
    """It cannot be found out whether a server is in use."""


def request_headers(notebook: Object) -> Mapping[str, str]:
    """The headers that a notebook needs on each request."""
    return parse_headers(annotations_of(notebook).get(HEADERS))


class ActivityProbe:
    """`address` gives the URL of the Service of a notebook, `headers` those to send to it."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        address: Callable[[Object], str],
        sources: Sequence[TrafficSource] = (),
        headers: Callable[[Object], Mapping[str, str]] = request_headers,
    ) -> None:
        self._http = http
        self._address = address
        self._headers = headers
        self._sources = sources

    async def close(self) -> None:
        await self._http.aclose()

    async def traffic(self) -> Traffic | None:
        """The traffic of all resources; None: there is no source, or one failed."""
        if not self._sources:
            return None
        together: dict[Key, datetime] = {}
        for source in self._sources:
            try:
                found = await source()
            except Exception as error:
                _LOG.warning("cannot find out the traffic: %s", error)
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
        except ActivityUnknown:
            return None
        if found is None:
            return seen
        last = max(t for t in (found.last, seen and seen.last, _LONG_AGO) if t)
        return Activity(found.busy, last)

    async def _jupyter(self, notebook: Object) -> Activity | None:
        """None: the answer is not Jupyter's."""
        kernels, terminals, status = await asyncio.gather(
            self._get(notebook, "api/kernels"),
            self._get(notebook, "api/terminals"),
            self._get(notebook, "api/status"),
        )
        if not isinstance(kernels, list):
            return None
        return parse_jupyter_activity(kernels, terminals, status)

    async def _get(self, notebook: Object, path: str) -> Any:
        """The JSON of the response; None if it is something else."""
        base = (annotations_of(notebook).get(REWRITE) or path_prefix(notebook)).strip("/")
        if {".", ".."} & set(base.split("/")) or {"?", "#"} & set(base):
            raise ActivityUnknown  # the path would leave this notebook
        root = f"{self._address(notebook)}/{base}".rstrip("/")
        try:
            async with (
                asyncio.timeout(_TOTAL_SECONDS),
                self._http.stream(
                    "GET",
                    f"{root}/{path}",
                    params={"no_track_activity": "1"},
                    headers={**self._headers(notebook), "Accept-Encoding": "identity"},
                ) as answer,
            ):
                if answer.status_code >= 500 or answer.status_code in _NOT_NOW:
                    raise ActivityUnknown
                body = await _read(answer)
        except (httpx2.HTTPError, UnicodeError, TimeoutError) as error:
            raise ActivityUnknown from error  # UnicodeError: from headers of the user
        try:
            return json.loads(body) if answer.status_code == 200 else None
        except (ValueError, RecursionError):
            return None


async def _read(answer: httpx2.Response) -> bytes:
    """The raw body: decompressing it could exceed any limit."""
    body = bytearray()
    async for piece in answer.aiter_raw():
        body += piece
        if len(body) > _MAX_BODY:
            raise ActivityUnknown
    return bytes(body)


def make_probe(
    options: Options, culling: Culling, sources: Sequence[TrafficSource]
) -> ActivityProbe:
    """Asks Services by name, or through the API server from outside the cluster."""

    def token_headers(notebook: Object) -> dict[str, str]:
        return workload_tokens.headers_for(notebook, options.access_key)

    if not culling.through_api:
        domain = options.cluster_domain
        return ActivityProbe(
            httpx2.AsyncClient(timeout=_TIMEOUT),
            lambda found: f"http://{name_of(found)}.{namespace_of(found)}.svc.{domain}",
            sources,
            headers=lambda found: {**request_headers(found), **token_headers(found)},
        )
    config = KubeConfig.from_env().get()
    assert config is not None
    given = client_adapter.ConnectionParams(timeout=_TIMEOUT)
    return ActivityProbe(
        client_adapter.AsyncClient(config, given),
        lambda found: (
            f"/api/v1/namespaces/{namespace_of(found)}/services/{name_of(found)}:80/proxy"
        ),
        sources,
        headers=token_headers,  # only: the API server would use others itself, e.g. Authorization
    )


_LONG_AGO = datetime.fromtimestamp(0, UTC)
_SERVICE_LABELS = "destination_service_namespace, destination_service_name"
_USER_TRAFFIC = '{reporter!="destination",source_workload!="clew-operator"}'
"""Excludes our own requests, and the counts of the server's sidecar, which include them."""
_COUNTERS = ("istio_requests_total", "istio_tcp_received_bytes_total")
_ANY_COUNTER = f'count(last_over_time({{__name__=~"{"|".join(_COUNTERS)}"}}[10m]))'
"""A row without a Service: shows that the Prometheus has these metrics at all."""


def istio_traffic(
    prometheus: str, idle: timedelta, *, late: timedelta = timedelta(seconds=15)
) -> TrafficSource:
    """Traffic from Istio's metrics: what was used since the last query counts as in use now.

    The first query is about the whole idle time, since the operator may not have run meanwhile.
    Metrics arrive in Prometheus with a delay of up to `late`.
    """
    last_query: float | None = None

    async def source() -> Traffic:
        nonlocal last_query
        began = monotonic()
        since = timedelta(seconds=began - last_query) if last_query is not None else idle
        query = " or ".join(
            [_ANY_COUNTER, *(_changed_counters(counter, since + late) for counter in _COUNTERS)]
        )
        async with httpx2.AsyncClient(timeout=_TIMEOUT) as http:
            address = f"{prometheus.rstrip('/')}/api/v1/query"
            answer = await http.get(address, params={"query": query})
            answer.raise_for_status()
            found = [row["metric"] for row in answer.json()["data"]["result"]]
        if {} not in found:
            raise ActivityUnknown(f"{prometheus} has no metrics of Istio")
        last_query, now = began, datetime.now(UTC)
        return {key: now for metric in found if metric for key in _resources_behind(metric)}

    return source


def _changed_counters(counter: str, since: timedelta) -> str:
    """A query for Services whose counter changed: a new counter counts from zero, and one that was
    reset counts when it is above zero again.

    Unlike a rate it needs no two samples within the time, so the scrape interval does not matter.
    A missed scrape does not make a counter new.
    """
    now, ago = f"{counter}{_USER_TRAFFIC}", since // timedelta(milliseconds=1)
    then = f"last_over_time({now}[10m] offset {ago}ms)"
    return f"max by ({_SERVICE_LABELS}) (({now} unless ({now} == {then})) > 0)"


def proxied_traffic(server: str, token: Callable[[], str]) -> TrafficSource:
    """Traffic through `clew server` and all servers that share its database. The token is read
    each time: it may be created after the operator started."""
    kinds = {"notebook": "Notebook", "tensorboard": "Tensorboard", "pvcviewer": "PVCViewer"}

    async def source() -> Traffic:
        async with httpx2.AsyncClient(timeout=_TIMEOUT) as http:
            answer = await http.get(
                f"{server.rstrip('/')}/api/v1/traffic",
                headers={"Authorization": f"Bearer {token()}"},
            )
            answer.raise_for_status()
            return {
                Key(kinds[row["kind"]], row["namespace"], row["name"]): last
                for row in answer.json()["traffic"]
                if (last := parse_time(row["last_activity"]))
            }

    return source


def _resources_behind(metric: Mapping[str, str]) -> list[Key]:
    """The resources that a Service may belong to."""
    namespace = metric.get("destination_service_namespace", "")
    return list(
        list_possible_parents(namespace, "Service", metric.get("destination_service_name", ""))
    )
