"""Browser sessions: signed values that expire, are valid for one origin, and can be revoked.

A value consists of its fields and a signature. The signing key is derived from the token, so any
server of the project can check it, and a new token ends all sessions; the token cannot be computed
from a value. The database holds only the revoked sessions. Every server reads them every two
seconds, and uses the last list while the database does not answer.

The fields are signed together with an audience. The API's sessions are not valid where notebooks
are served, nor the other way round: a browser sends cookies to every port of a host. A ticket
carries a session from one origin to the other: in an address, once, within a minute.
"""

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from clew.errors import ClewError
from clew.server.catalogue import revoked_sessions
from clew.server.server_state import Service

_LOG = logging.getLogger("clew.server")
SESSION_SECONDS = 7 * 24 * 3600
TICKET_SECONDS = 60
_REREAD_SECONDS = 2.0
API_AUDIENCE = "api"


def apps_audience(host: str) -> str:
    """The audience of sessions for the apps at this host and port."""
    return f"apps {host}"


def _ticket_audience(host: str) -> str:
    return f"ticket {host}"


@dataclass(frozen=True)
class Session:
    id: str
    expires: int
    """Seconds since the epoch."""


class Sessions:
    """The sessions of one project. Use from one event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        subject = f"clew sessions of {service.directory.uid}".encode()
        self._key = hmac.digest(service.token.encode(), subject, hashlib.sha256)
        self._revoked: frozenset[str] = frozenset()
        self._last_read: float | None = None
        self._reading = asyncio.Lock()

    def begin(self) -> Session:
        return Session(secrets.token_hex(16), int(time.time()) + SESSION_SECONDS)

    def value(self, session: Session, audience: str) -> str:
        """The cookie value of this session."""
        return self._sign(audience, session.id, session.expires)

    async def find(self, values: Iterable[str], audience: str) -> Session | None:
        """The first valid session among these cookie values."""
        for value in values:
            fields = self._verify(audience, value, 2)
            if fields is None:
                continue
            session = Session(fields[0], int(fields[1]))
            if session.expires > time.time() and await self._is_valid(session):
                return session
        return None

    async def end(self, session: Session) -> None:
        """Revoke a session, at every origin and every server."""
        await self._revoke(session.id, session.expires)
        self._revoked |= {session.id}

    def ticket(self, session: Session, host: str) -> str:
        """A single-use value that carries the session to this host and port."""
        until = int(time.time()) + TICKET_SECONDS
        return self._sign(
            _ticket_audience(host), secrets.token_hex(16), until, session.id, session.expires
        )

    async def redeem(self, ticket: str, host: str) -> Session | None:
        """The session of a valid ticket that was not used before."""
        fields = self._verify(_ticket_audience(host), ticket, 4)
        if fields is None or int(fields[1]) <= time.time():
            return None
        session = Session(fields[2], int(fields[3]))
        if not await self._revoke(fields[0], int(fields[1])):
            return None
        return session if await self._is_valid(session) else None

    def _sign(self, audience: str, *fields: object) -> str:
        text = ".".join(map(str, fields))
        return f"{text}.{self._signature(audience, text)}"

    def _verify(self, audience: str, value: str, number: int) -> list[str] | None:
        """The fields of a value, if it was signed for this audience."""
        text, _, signature = value.rpartition(".")
        expected = self._signature(audience, text)
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), expected.encode()):
            return None
        fields = text.split(".")
        return fields if len(fields) == number else None

    def _signature(self, audience: str, text: str) -> str:
        signed = f"{audience}\n{text}".encode("utf-8", "replace")
        return hmac.new(self._key, signed, hashlib.sha256).hexdigest()

    async def _is_valid(self, session: Session) -> bool:
        if self._last_read is None or (
            time.monotonic() - self._last_read > _REREAD_SECONDS and not self._reading.locked()
        ):
            async with self._reading:
                await self._reread()
        return session.id not in self._revoked

    async def _reread(self) -> None:
        try:
            self._revoked = await run_in_threadpool(self._list_revoked)
        except ClewError as error:
            if self._last_read is None:
                raise
            _LOG.error("cannot read the revoked sessions: %s", error.message)
        self._last_read = time.monotonic()

    def _list_revoked(self) -> frozenset[str]:
        with self._service.graph() as graph:
            return revoked_sessions.list_revoked(graph, now=int(time.time()))

    async def _revoke(self, id: str, expires: int) -> bool:  # noqa: A002
        def add() -> bool:
            with self._service.graph() as graph:
                return revoked_sessions.revoke(graph, id, expires, now=int(time.time()))

        return await run_in_threadpool(add)
