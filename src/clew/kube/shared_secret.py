"""A Secret that several processes share: the first one fills it, the others read it.

The manifests contain the Secrets without data, so the programs need only the right to update
`clew-server` and `clew-access`. Kubernetes cannot limit the right to create Secrets to names.
"""

import base64
import secrets
from typing import Any

import httpx2
from lightkube import Client
from lightkube.core.exceptions import ApiError, ConfigError
from lightkube.generic_resource import create_namespaced_resource

from clew.errors import ClewError

ACCESS_KEY = "clew-access"
"""The Secret of the key that access tokens are derived from."""
SECRET: Any = create_namespaced_resource("", "v1", "Secret", "secrets")
_TIMEOUT = httpx2.Timeout(10.0)
_NOT_FOUND, _CONFLICT = 404, 409


def get_or_fill(name: str, entry: str, value: str) -> str:
    """Read an entry of a Secret in our namespace; if the Secret is empty, store `value` there; if
    there is none, create it."""
    try:
        api = Client(timeout=_TIMEOUT)
        while True:
            try:
                return _get_or_fill(api, name, entry, value)
            except ApiError as error:
                if error.status.code != _CONFLICT:  # another process was faster: read what it wrote
                    raise
    except (ApiError, httpx2.HTTPError, ConfigError) as error:
        raise ClewError(
            f"cannot read or write the Secret {name}: {error}",
            hint="kubectl apply -k deploy/ makes it, and the right to update it",
        ) from error


def access_key() -> str:
    """The key that the operator and the server share; the first to start makes it."""
    return get_or_fill(ACCESS_KEY, "key", secrets.token_urlsafe(32))


def _get_or_fill(api: Client, name: str, entry: str, value: str) -> str:
    try:
        found = api.get(SECRET, name)
    except ApiError as error:
        if error.status.code != _NOT_FOUND:
            raise
        api.create(SECRET({"metadata": {"name": name}, "stringData": {entry: value}}))
        return value
    data = found.get("data") or {}
    if entry in data:
        return base64.b64decode(data[entry]).decode().strip()
    if data:
        raise ClewError(
            f"the Secret {name} has no {entry}", hint=f"add it, or: kubectl delete secret {name}"
        )
    # Its resourceVersion makes this fail if another process has filled it meanwhile.
    api.replace(SECRET({**found, "stringData": {entry: value}}))
    return value
