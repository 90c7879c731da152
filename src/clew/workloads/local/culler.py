"""Stops notebooks, TensorBoards and viewers that were idle for too long.

The rules are those of the cluster (`kube.culling.idleness`): Jupyter is asked for its kernels and
terminals; for the others the traffic through the proxy counts. Nothing is stopped unless the server
or the resource itself sets a limit.
"""

import http.client
import json
import logging
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from clew.kube.controller.model import STOPPED, is_stopped
from clew.kube.controller.options import Culling
from clew.kube.culling.idleness import Activity, decide, parse_jupyter_activity
from clew.kube.objects import Json, Key, format_time, name_of
from clew.kube.workload_tokens import HEADER
from clew.workloads.local.idle_limit import IdleLimit
from clew.workloads.local.pods import make_pod
from clew.workloads.local.processes.running_process import Address
from clew.workloads.local.processes.supervisor import PROCESS_KINDS, Supervisor
from clew.workloads.local.resource_files import NAMESPACE, ResourceFiles

_LOG = logging.getLogger("clew.workloads")
_PERIOD_SECONDS = 30.0
_NEVER_MINUTES = 60.0 * 24 * 365 * 100
_TIMEOUT = 5.0
_MAX_BODY = 1 << 20

TrafficSource = Callable[[], Mapping[Key, datetime]]


class Culler:
    def __init__(
        self,
        files: ResourceFiles,
        supervisor: Supervisor,
        *,
        limit: IdleLimit,
    ) -> None:
        self._files = files
        self._supervisor = supervisor
        self._limit = limit
        self._traffic: TrafficSource = dict
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="culler", daemon=True)

    def start(self, traffic: TrafficSource) -> None:
        """`traffic`: when each resource was last used through the proxy."""
        self._traffic = traffic
        self._thread.start()

    def close(self) -> None:
        self._ending.set()

    def _run(self) -> None:
        while not self._ending.wait(_PERIOD_SECONDS):
            self.check_all()

    def check_all(self) -> None:
        traffic = self._traffic()
        for kind in PROCESS_KINDS:
            for resource in self._files.list(kind):
                try:
                    self._check(resource, traffic)
                except Exception:
                    _LOG.exception("cannot check whether %s is idle", name_of(resource))

    def _check(self, resource: Json, traffic: Mapping[Key, datetime]) -> None:
        key = Key(str(resource["kind"]), NAMESPACE, name_of(resource))
        pod = make_pod(resource, self._supervisor.runtime(key))
        address = self._supervisor.address(key)
        activity = self._activity(key, address, traffic) if pod and address else None
        now = datetime.now(UTC)
        minutes = self._limit.minutes
        culling = Culling(idle=timedelta(minutes=_NEVER_MINUTES if minutes is None else minutes))
        verdict = decide(resource, pod, activity, now, culling)
        notes: dict[str, str | None] = dict(verdict.annotations)
        if verdict.cull and not is_stopped(resource):
            notes[STOPPED] = format_time(now)  # Kubeflow deletes the others; here they stay
            text = "It was idle for too long, and is stopped; its volumes are kept."
            self._files.add_event(key, warning=False, reason="Culled", message=text)
        if notes:
            self._files.merge_patch(key, {"metadata": {"annotations": notes}})
            self._supervisor.wake()

    def _activity(
        self, key: Key, address: Address, traffic: Mapping[Key, datetime]
    ) -> Activity | None:
        """None: it is not known, so nothing is stopped."""
        last = traffic.get(key)
        if key.kind != "Notebook":
            return Activity(last=last)
        base = f"/notebook/{NAMESPACE}/{key.name}"
        kernels = _get(address, f"{base}/api/kernels")
        if not isinstance(kernels, list):
            return None
        found = parse_jupyter_activity(
            kernels, _get(address, f"{base}/api/terminals"), _get(address, f"{base}/api/status")
        )
        times = [time for time in (found.last, last) if time]
        return Activity(found.busy, max(times, default=None))


def _get(address: Address, path: str) -> Any:
    """The JSON of a response; None if there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=_TIMEOUT)
    try:
        headers = {HEADER: address.token}
        connection.request("GET", f"{path}?no_track_activity=1", headers=headers)
        response = connection.getresponse()
        body = response.read(_MAX_BODY)
        return json.loads(body) if response.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    finally:
        connection.close()
