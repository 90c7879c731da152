"""The Pods of one node, and the volumes behind their claims.

One watch follows the Pods. Claims and volumes are asked for when a Pod names one that is not known
yet: a claim is bound before its Pod starts, and never bound to another volume.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
from lightkube import Client
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_global_resource

from clew.kube.client import TYPES
from clew.kube.objects import Json, dig, name_of, namespace_of, uid_of

_LOG = logging.getLogger("clew.agents")
_VOLUME: Any = create_global_resource("", "v1", "PersistentVolume", "persistentvolumes")
_WATCH_SECONDS = 120
_TIMEOUT = httpx2.Timeout(30.0, connect=5.0, read=_WATCH_SECONDS + 30.0)
_RETRY_SECONDS = 0.2
"""Short, because a Pod that a kubelet starts before the agent knows it is marked late."""
_FAILURES = (ApiError, httpx2.HTTPError, OSError)


class NodePods:
    """Follows the Pods of a node in a thread."""

    def __init__(
        self,
        node: str,
        changed: Callable[[Json], None],
        removed: Callable[[str], None],
        connected: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """In the thread of the watch, `changed` is called with every Pod that appears or changes,
        `removed` with the uid of one that is gone, and `connected` with whether the API server
        tells of changes: True when all present Pods are known, False when it is away."""
        self._api = Client(timeout=_TIMEOUT)
        self._node = node
        self._changed = changed
        self._removed = removed
        self._connected = connected
        self._known: dict[str, str] = {}
        self._listed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubernetes-pods", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait_until_listed(self, seconds: float) -> bool:
        """Whether all present Pods are known."""
        return self._listed.wait(seconds)

    def read_claim(self, namespace: str, name: str) -> tuple[Json, Json | None] | None:
        """A claim, and the volume that it is bound to; None if there is none."""
        try:
            claim = dict(self._api.get(TYPES["PersistentVolumeClaim"], name, namespace=namespace))
            volume = dig(claim, "spec", "volumeName")
            return claim, dict(self._api.get(_VOLUME, volume)) if volume else None
        except ApiError as error:
            if error.status.code == 404:
                return None
            raise

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            try:
                self._watch(self._list())
            except _FAILURES as error:
                _LOG.warning("cannot watch the Pods of %s: %s", self._node, error)
                self._connected(False)
                pause.wait(_RETRY_SECONDS)

    def _list(self) -> str:
        listed = self._api.list(TYPES["Pod"], namespace="*", fields={"spec.nodeName": self._node})
        present = [dict(pod) for pod in listed]
        gone = self._known.keys() - {uid_of(pod) for pod in present}
        for pod in present:
            self._see(pod)
        for uid in gone:
            self._forget(uid)
        self._connected(True)
        self._listed.set()
        return str(listed.resourceVersion)

    def _watch(self, version: str) -> None:
        events = self._api.watch(
            TYPES["Pod"],
            namespace="*",
            fields={"spec.nodeName": self._node},
            server_timeout=_WATCH_SECONDS,
            resource_version=version,
        )
        for kind, found in events:
            pod: Mapping[str, Any] = dict(found)
            if kind == "DELETED":
                self._forget(uid_of(pod))
            else:
                self._see(dict(pod))

    def _see(self, pod: Json) -> None:
        self._known[uid_of(pod)] = f"{namespace_of(pod)}/{name_of(pod)}"
        self._changed(pod)

    def _forget(self, uid: str) -> None:
        self._known.pop(uid, None)
        self._removed(uid)
