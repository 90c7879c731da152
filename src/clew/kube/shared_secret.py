"""A Secret that several processes share: the first one creates it, the others read it."""

from __future__ import annotations

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
_SECRET: Any = create_namespaced_resource("", "v1", "Secret", "secrets")
_TIMEOUT = httpx2.Timeout(10.0)


def get_or_create(name: str, entry: str, otherwise: str) -> str:
    """Read an entry of a Secret in our namespace; if there is no such Secret, create it with the
    value `otherwise`."""
    try:
        api = Client(timeout=_TIMEOUT)
        return _entry(api, name, entry) or _create(api, name, entry, otherwise)
    except (ApiError, httpx2.HTTPError, ConfigError) as error:
        raise ClewError(
            f"cannot read or create the Secret {name}: {error}",
            hint="allow the service account to get and to create it",
        ) from error


def access_key() -> str:
    """The key that the operator and the server share; the first to start creates it."""
    return get_or_create(ACCESS_KEY, "key", secrets.token_urlsafe(32))


def _entry(api: Client, name: str, entry: str) -> str | None:
    try:
        found = api.get(_SECRET, name)
    except ApiError as error:
        if error.status.code == 404:
            return None
        raise
    held = (found.get("data") or {}).get(entry)
    if held is None:
        raise ClewError(
            f"the Secret {name} has no {entry}", hint=f"add it, or: kubectl delete secret {name}"
        )
    return base64.b64decode(held).decode().strip()


def _create(api: Client, name: str, entry: str, value: str) -> str:
    made = _SECRET({"metadata": {"name": name}, "stringData": {entry: value}})
    try:
        api.create(made)
    except ApiError as error:
        if error.status.code == 409 and (other := _entry(api, name, entry)):
            return other  # another process created it first
        raise
    return value
