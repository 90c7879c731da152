"""A secret that several share: whoever comes first makes it, all others find it."""

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
_PATIENCE = httpx2.Timeout(10.0)


def kept(name: str, entry: str, otherwise: str) -> str:
    """What an entry of a Secret of the own namespace holds; where there is no such Secret, one is
    made that holds something else."""
    try:
        api = Client(timeout=_PATIENCE)
        return _entry(api, name, entry) or _make(api, name, entry, otherwise)
    except (ApiError, httpx2.HTTPError, ConfigError) as error:
        raise ClewError(
            f"the Secret {name} cannot be had: {error}",
            hint="its service account must be allowed to get and to create it",
        ) from error


def access_key() -> str:
    """The key that the operator and the server share; whichever starts first makes it."""
    return kept(ACCESS_KEY, "key", secrets.token_urlsafe(32))


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


def _make(api: Client, name: str, entry: str, value: str) -> str:
    made = _SECRET({"metadata": {"name": name}, "stringData": {entry: value}})
    try:
        api.create(made)
    except ApiError as error:
        if error.status.code == 409 and (other := _entry(api, name, entry)):
            return other  # somebody was faster
        raise
    return value
