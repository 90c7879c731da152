"""What a Pod may read of itself: its own object, and its claims.

It needs the right to `get` Pods and claims in its namespace, and no other.
"""

import httpx2
from lightkube import Client
from lightkube.core.exceptions import ApiError, ConfigError

from clew.errors import Unavailable
from clew.kube.client import TYPES
from clew.kube.objects import Json

_TIMEOUT = httpx2.Timeout(10.0)
_NOT_FOUND = 404
_FAILURES = (ApiError, httpx2.HTTPError, ConfigError, OSError)


class OwnPod:
    """Raises Unavailable when Kubernetes does not answer or refuses."""

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        try:
            self._api = Client(timeout=_TIMEOUT, namespace=namespace)
        except _FAILURES as error:
            raise _unavailable("the API server", error) from error

    def read(self) -> Json:
        try:
            return dict(self._api.get(TYPES["Pod"], self.name))
        except _FAILURES as error:
            raise _unavailable(f"the Pod {self.name}", error) from error

    def read_claim(self, name: str) -> Json | None:
        """None if there is none."""
        try:
            return dict(self._api.get(TYPES["PersistentVolumeClaim"], name))
        except ApiError as error:
            if error.status.code == _NOT_FOUND:
                return None
            raise _unavailable(f"the claim {name}", error) from error
        except _FAILURES as error:
            raise _unavailable(f"the claim {name}", error) from error


def _unavailable(what: str, error: Exception) -> Unavailable:
    return Unavailable(
        f"cannot read {what}: {error}",
        hint="the account of the Pod needs the Role of deploy/agents/pod in its namespace",
    )
