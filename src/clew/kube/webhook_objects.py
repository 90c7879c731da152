"""The objects of an admission webhook: the Secret with its certificate, and its configuration.

The manifests contain both, so the webhook needs the right to read and update these two by name.
"""

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx2
from lightkube import Client
from lightkube.core.exceptions import ApiError, ConfigError
from lightkube.generic_resource import create_global_resource
from lightkube.types import PatchType

from clew.errors import Conflict, Unavailable
from clew.kube.objects import Json, dig
from clew.kube.shared_secret import SECRET

_CONFIGURATION: Any = create_global_resource(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
)
_TIMEOUT = httpx2.Timeout(10.0)
_CONFLICT = 409
_FAILURES = (ApiError, httpx2.HTTPError, ConfigError, OSError)


class SecretEntries(NamedTuple):
    entries: dict[str, bytes]
    found: Json
    """The Secret as it was read: writing fails if it was changed since."""


class WebhookObjects:
    """The objects of the webhook with this name. Raises Unavailable when Kubernetes does not answer
    or refuses."""

    def __init__(self, name: str, namespace: str | None = None) -> None:
        """`namespace`: of the Secret and the Service; default: our own."""
        self._name = name
        try:
            self._api = Client(timeout=_TIMEOUT, namespace=namespace)
        except _FAILURES as error:
            raise _unavailable("reach the API server", error) from error

    @property
    def host(self) -> str:
        """The name that the API server connects to: that of a Service like the webhook."""
        return f"{self._name}.{self._api.namespace}.svc"

    def read_secret(self) -> SecretEntries:
        try:
            found = dict(self._api.get(SECRET, self._name))
        except _FAILURES as error:
            raise _unavailable(f"read the Secret {self._name}", error) from error
        data = found.get("data") or {}
        return SecretEntries({key: base64.b64decode(text) for key, text in data.items()}, found)

    def write_secret(self, before: SecretEntries, entries: Mapping[str, bytes]) -> None:
        """Raises Conflict if another process has changed it."""
        data = {key: base64.b64encode(value).decode() for key, value in entries.items()}
        try:
            self._api.replace(SECRET({**before.found, "data": data}))
        except _FAILURES as error:
            if isinstance(error, ApiError) and error.status.code == _CONFLICT:
                raise Conflict(f"the Secret {self._name} was changed meanwhile") from error
            raise _unavailable(f"write the Secret {self._name}", error) from error

    def publish_authorities(self, bundle: bytes) -> bool:
        """Let the API server trust these certificates; False if it does already."""
        text = base64.b64encode(bundle).decode()
        try:
            found = dict(self._api.get(_CONFIGURATION, self._name))
            hooks = found.get("webhooks") or []
            if all(dig(hook, "clientConfig", "caBundle") == text for hook in hooks):
                return False
            patch = [
                {"op": "test", "path": "/metadata/uid", "value": found["metadata"]["uid"]},
                *(
                    {"op": "add", "path": f"/webhooks/{n}/clientConfig/caBundle", "value": text}
                    for n in range(len(hooks))
                ),
            ]
            self._api.patch(_CONFIGURATION, self._name, patch, patch_type=PatchType.JSON)
        except _FAILURES as error:
            what = f"change the MutatingWebhookConfiguration {self._name}"
            raise _unavailable(what, error) from error
        return True


def _unavailable(what: str, error: Exception) -> Unavailable:
    return Unavailable(
        f"cannot {what}: {error}", hint="kubectl apply -k deploy/agents/inject makes it"
    )
