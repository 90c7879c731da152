"""Personal access tokens: bearer tokens for programs, which expire and can be revoked one by one.

A token is `clew_ID_SECRET`. The secret is random and has 256 bits, so a plain hash of the token is
enough: the database holds only that, and a copy of the database opens nothing. A request costs no
query: every server reads the list again every two seconds, and uses the last list while the
database does not answer. A token that another server has just made is looked up at once.
"""

import asyncio
import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import replace

from starlette.concurrency import run_in_threadpool

from clew.errors import ClewError
from clew.server.catalogue import access_tokens
from clew.server.catalogue.access_tokens import StoredToken
from clew.server.server_state import Service

_LOG = logging.getLogger("clew.server")
_FORM = re.compile(r"clew_([0-9a-f]{16})_[0-9a-f]{64}")
_REREAD_SECONDS = 2.0
_UNKNOWN_SECONDS = 0.2
"""How often the list is read again because of a token that is not in it."""
_USE_SECONDS = 60
"""The last use is noted to the minute, so that requests do not each write to the database."""


def is_access_token(value: str) -> bool:
    """Whether a text has the form of a token, of this or another server."""
    return _FORM.fullmatch(value) is not None


def new_token(
    name: str, seconds: int, *, scope: str, kubernetes_user: str | None = None
) -> tuple[str, StoredToken]:
    """A new token, and what is stored of it."""
    id_, now = secrets.token_hex(8), int(time.time())
    token = f"clew_{id_}_{secrets.token_hex(32)}"
    return token, StoredToken(
        id_,
        name,
        _hash(token),
        now,
        now + seconds,
        scope=scope,
        kubernetes_user=kubernetes_user,
    )


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


class AccessTokens:
    """The tokens of one project. Use from one event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._known: dict[str, StoredToken] = {}
        self._last_read: float | None = None
        self._reading = asyncio.Lock()

    async def find(self, values: Iterable[str]) -> StoredToken | None:
        """The first of these that is a valid token."""
        for value in values:
            form = _FORM.fullmatch(value)
            token = await self._stored(form[1]) if form else None
            if token is None or not hmac.compare_digest(_hash(value), token.hash):
                continue
            now = int(time.time())
            if token.expires > now:
                if now - (token.last_used or 0) >= _USE_SECONDS:
                    await self._note_use(token, now)
                return token
        return None

    async def read_again(self) -> None:
        """A token was made or revoked on this server: that counts from now on."""
        async with self._reading:
            await self._reread()

    async def _stored(self, id: str) -> StoredToken | None:  # noqa: A002
        waiting = _REREAD_SECONDS if id in self._known else _UNKNOWN_SECONDS
        if self._is_older(waiting):
            async with self._reading:
                if self._is_older(waiting):
                    await self._reread()
        return self._known.get(id)

    def _is_older(self, seconds: float) -> bool:
        return self._last_read is None or time.monotonic() - self._last_read > seconds

    async def _reread(self) -> None:
        try:
            self._known = await run_in_threadpool(self._list)
        except ClewError as error:
            if self._last_read is None:
                raise
            _LOG.error("cannot read the access tokens: %s", error.message)
        self._last_read = time.monotonic()

    def _list(self) -> dict[str, StoredToken]:
        with self._service.graph() as graph:
            return {token.id: token for token in access_tokens.list_tokens(graph)}

    async def _note_use(self, token: StoredToken, now: int) -> None:
        def note() -> None:
            with self._service.graph() as graph:
                access_tokens.note_use(graph, token.id, now)

        self._known[token.id] = replace(token, last_used=now)
        try:
            await run_in_threadpool(note)
        except ClewError as error:  # the request itself does not depend on it
            _LOG.error("cannot note the use of an access token: %s", error.message)
