"""The NodeLatency of one node, as its agent follows and fills it.

The scheduler creates the object. Until it exists, the agent cannot publish.
"""

import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import httpx2
import msgspec
from lightkube import Client
from lightkube.config import client_adapter
from lightkube.config.kubeconfig import KubeConfig
from lightkube.core.exceptions import ApiError, ConfigError
from lightkube.generic_resource import create_global_resource

from clew.errors import Unavailable
from clew.kube.latency.node_latency import MERGE_PATCH, PATH, Spec
from clew.kube.objects import Json

_LOG = logging.getLogger("clew.latency")
_RESOURCE: Any = create_global_resource("latency.clew.dev", "v1", "NodeLatency", "nodelatencies")
_WATCH_SECONDS = 300
_RETRY_SECONDS = 10.0
_WATCH_TIMEOUT = httpx2.Timeout(30.0, connect=5.0, read=_WATCH_SECONDS + 30.0)
_FAILURES = (ApiError, httpx2.HTTPError, OSError, msgspec.ValidationError)


class NodeLatencyClient:
    def __init__(self, node: str) -> None:
        """Raises Unavailable if no cluster is configured."""
        self._node = node
        try:
            config = KubeConfig.from_env().get()
            assert config is not None
            self._api = Client(config, timeout=_WATCH_TIMEOUT)
            self._http = client_adapter.Client(
                config, client_adapter.ConnectionParams(timeout=httpx2.Timeout(10.0))
            )
        except (ConfigError, OSError) as error:
            raise Unavailable(
                f"cannot reach a cluster: {error}", hint="set KUBECONFIG, or run it in a Pod"
            ) from error

    def follow(self, asked: Callable[[Spec], None]) -> None:
        """Call `asked` with each new spec, in a thread of its own."""
        threading.Thread(
            target=self._run, args=(asked,), name="kubernetes-latency", daemon=True
        ).start()

    def publish(self, status: Json) -> str | None:
        """Write the status; why it could not be written, or None."""
        try:
            answer = self._http.patch(
                f"{PATH}/{self._node}/status", content=json.dumps(status), headers=MERGE_PATCH
            )
        except (httpx2.HTTPError, OSError) as error:
            return repr(error)
        if answer.status_code == httpx2.codes.NOT_FOUND:
            return f"there is no NodeLatency {self._node} yet: the scheduler makes it"
        return None if answer.is_success else f"HTTP {answer.status_code}: {answer.text[:300]}"

    def _run(self, asked: Callable[[Spec], None]) -> None:
        pause = threading.Event()
        while True:
            try:
                self._watch(asked)
            except _FAILURES as error:
                _LOG.warning("cannot watch the NodeLatency %s: %s", self._node, error)
                pause.wait(_RETRY_SECONDS)

    def _watch(self, asked: Callable[[Spec], None]) -> None:
        """Without a version to begin at, a watch begins with the object as it is."""
        events = self._api.watch(
            _RESOURCE, fields={"metadata.name": self._node}, server_timeout=_WATCH_SECONDS
        )
        for kind, found in events:
            spec = {} if kind == "DELETED" else found.get("spec") or {}
            asked(msgspec.convert(spec, Spec))
