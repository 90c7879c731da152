"""Which headers go on, and which come back; and what of a query goes on.

Those that are about one connection end at it. The server's own token and cookie stay here, also
where the token stands in an address: people open one with `?token=`. So do the cookies of other
servers on this machine, which a browser sends along because it does not tell ports apart. On the
way back nothing may touch the cookie, nor reach beyond the target's own addresses: all targets and
the server are one origin to a browser.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from urllib.parse import unquote_to_bytes

from starlette.types import Scope

Headers = list[tuple[bytes, bytes]]

_COOKIE = b"clew-"
"""How the names of servers' cookies begin."""
_CONNECTION = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
_OURS = frozenset(
    (
        b"expect",
        b"forwarded",
        b"x-forwarded-for",
        b"x-forwarded-host",
        b"x-forwarded-port",
        b"x-forwarded-prefix",
        b"x-forwarded-proto",
        b"x-real-ip",
    )
)
"""What a client may say, but what we know better."""
_BEYOND = frozenset((b"service-worker-allowed", b"clear-site-data", b"date"))
"""Not taken from a target: it would speak for the whole origin. The date is set by the server."""
_HANDSHAKE = b"sec-websocket-"


def onward(
    scope: Scope, *, token: str, prefix: bytes, rewritten: bool, more: Mapping[str, str]
) -> Headers:
    """What a target is told: what the client said, and who the client is."""
    given: Headers = scope["headers"]
    replaced = {name.lower().encode() for name in more}
    drop = _CONNECTION | _OURS | _named(given) | replaced
    found = [
        (name, kept)
        for name, value in given
        if name not in drop
        and not (scope["type"] == "websocket" and name.startswith(_HANDSHAKE))
        and (kept := _without_ours(name, value, token.encode())) is not None
    ]
    host = next((value for name, value in given if name == b"host"), b"")
    client = scope.get("client")
    if client:
        found.append((b"x-forwarded-for", str(client[0]).encode()))
    secure = scope["scheme"] in ("https", "wss")
    found += [
        (b"x-forwarded-host", host),
        (b"x-forwarded-proto", b"https" if secure else b"http"),
    ]
    if rewritten:
        found.append((b"x-forwarded-prefix", prefix))
    return found + [(name.encode(), value.encode()) for name, value in more.items()]


def query(given: bytes, token: bytes) -> bytes:
    """A query, as it was sent, without the pairs whose value is the token."""
    return b"&".join(
        pair
        for pair in given.split(b"&")
        if not hmac.compare_digest(unquote_to_bytes(pair.partition(b"=")[2]), token)
    )


def back(given: Iterable[tuple[bytes, bytes]], *, bodyless: bool) -> Headers:
    """What the client is told of an answer; `bodyless`: whatever length it states, none comes."""
    kept = [(name.lower(), value) for name, value in given]
    drop = _CONNECTION | _BEYOND | _named(kept)
    if bodyless:
        drop |= {b"content-length"}
    return [
        (name, value)
        for name, value in kept
        if name not in drop and not (name == b"set-cookie" and _is_ours(value))
    ]


def _named(headers: Iterable[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """Those that this connection alone is about, by its own word."""
    words = (value for name, value in headers if name == b"connection")
    return frozenset(word.strip().lower() for value in words for word in value.split(b","))


def _without_ours(name: bytes, value: bytes, token: bytes) -> bytes | None:
    """The value without what belongs to the server; None: nothing is left of it."""
    if name == b"authorization":
        kind, _, secret = value.partition(b" ")
        ours = kind.lower() == b"bearer" and hmac.compare_digest(secret.strip(), token)
        return None if ours else value
    if name == b"cookie":
        kept = [part.strip() for part in value.split(b";") if part.strip() and not _is_ours(part)]
        return b"; ".join(kept) or None
    if name == b"referer":
        address, _, asked = value.partition(b"?")
        rest = query(asked, token)
        return b"%s?%s" % (address, rest) if rest else address
    return value


def _is_ours(cookie: bytes) -> bool:
    return cookie.strip().lower().startswith(_COOKIE)
