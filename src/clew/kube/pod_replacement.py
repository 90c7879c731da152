"""Replace Pods that run, with the rights of the user: by a rollout of their owner, or singly."""

from typing import Any

import httpx2
from lightkube import Client
from lightkube.core.exceptions import ApiError, ConfigError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.types import PatchType

from clew.errors import NotFound, Unavailable
from clew.kube.client import TYPES
from clew.kube.objects import Json, Object, name_of, uid_of

OWNERS: dict[str, Any] = {
    "deployment": TYPES["Deployment"],
    "statefulset": TYPES["StatefulSet"],
    "daemonset": create_namespaced_resource("apps", "v1", "DaemonSet", "daemonsets"),
}
"""The kinds whose template may change, which replaces their Pods."""
_WAIT_SECONDS = 600
_TIMEOUT = httpx2.Timeout(30.0, read=_WAIT_SECONDS + 30.0)
_NOT_FOUND = 404
_FAILURES = (ApiError, httpx2.HTTPError, ConfigError, OSError)


class PodReplacement:
    """Raises NotFound and Unavailable."""

    def __init__(self, namespace: str | None) -> None:
        """`namespace`: default: that of the kubeconfig."""
        try:
            self._api = Client(timeout=_TIMEOUT, namespace=namespace)
        except _FAILURES as error:
            raise _failed("reach Kubernetes", error) from error

    def annotate_template(self, kind: str, name: str, annotations: dict[str, str]) -> None:
        """Change the template of one of `OWNERS`."""
        patch = {"spec": {"template": {"metadata": {"annotations": annotations}}}}
        try:
            self._api.patch(OWNERS[kind], name, patch, patch_type=PatchType.MERGE)
        except _FAILURES as error:
            raise _failed(f"change {kind}/{name}", error) from error

    def read_pod(self, name: str) -> Json:
        try:
            return dict(self._api.get(TYPES["Pod"], name))
        except _FAILURES as error:
            raise _failed(f"read pod/{name}", error) from error

    def replace_pod(self, old: Object, new: Json) -> None:
        """Delete a Pod and create another one of its name. It is tried under another name first:
        a Pod that would be refused is not deleted."""
        kind, name = TYPES["Pod"], name_of(old)
        trial = {**new, "metadata": {**new["metadata"], "name": f"{name[:240]}-trial"}}
        try:
            self._api.create(kind(trial), dry_run=True)
            version = str(old["metadata"]["resourceVersion"])
            self._api.delete(kind, name)
            self._wait_until_gone(name, uid_of(old), version)
            self._api.create(kind(new))
        except _FAILURES as error:
            raise _failed(f"replace pod/{name}", error) from error

    def _wait_until_gone(self, name: str, uid: str, version: str) -> None:
        events = self._api.watch(
            TYPES["Pod"],
            fields={"metadata.name": name},
            server_timeout=_WAIT_SECONDS,
            resource_version=version,
        )
        for kind, found in events:
            if kind == "DELETED" and uid_of(dict(found)) == uid:
                return


def _failed(what: str, error: Exception) -> NotFound | Unavailable:
    if isinstance(error, ApiError) and error.status.code == _NOT_FOUND:
        return NotFound(f"cannot {what}: there is none")
    return Unavailable(f"cannot {what}: {error}")
