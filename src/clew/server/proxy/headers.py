"""Decide which headers are passed to a target, and which come back from it.

Hop-by-hop headers are dropped. So are Clew's token (also in a URL, since users open `?token=…`) and
cookies, and the cookies of other Clew servers on this host, because browsers send cookies to all
ports. In a response, a target cannot set Clew's cookies or affect anything beyond its own pages.
"""

import hmac
from collections.abc import Iterable, Mapping
from urllib.parse import unquote_to_bytes

from starlette.types import Scope

from clew.server.identity.access_tokens import is_access_token

Headers = list[tuple[bytes, bytes]]

_COOKIES = (b"clew-", b"__host-clew-")
"""Prefixes of the names of Clew's cookies, in lower case."""
_CONNECTION = frozenset(
    (
        b"connection", b"http2-settings", b"keep-alive", b"proxy-authenticate",
        b"proxy-authorization", b"proxy-connection", b"te", b"trailer", b"transfer-encoding",
        b"upgrade",
    )
)  # fmt: skip
_FRAMING = frozenset((b"content-length", b"host"))
_END_TO_END = _FRAMING | frozenset(
    (b"authorization", b"cookie", b"set-cookie", b"origin", b"referer", b"location")
)
_END_TO_END_PREFIXES = (b"content-", b"sec-", b"x-forwarded-")
"""Never dropped because a `Connection` header names them: without its length, a body is taken for
the next request on the connection."""
_SET_BY_PROXY = frozenset(
    (
        b"expect", b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-port",
        b"x-forwarded-prefix", b"x-forwarded-proto", b"x-real-ip",
    )
)  # fmt: skip
"""Set by the proxy; values of the client are dropped."""
_ORIGIN_WIDE = frozenset(
    (
        b"alt-svc", b"clear-site-data", b"date", b"nel", b"report-to", b"service-worker-allowed",
        b"strict-transport-security",
    )
)  # fmt: skip
"""Not taken from a target: they apply to a whole host or origin. The server sets the date."""
_HANDSHAKE = b"sec-websocket-"


def request_headers(
    scope: Scope, *, token: str, prefix: bytes, rewritten: bool, more: Mapping[str, str]
) -> Headers:
    """The request headers for a target: those of the client, and its address."""
    given: Headers = scope["headers"]
    replaced = {name.lower().encode() for name in more}
    drop = _CONNECTION | _SET_BY_PROXY | _connection_options(given) | replaced
    found = [
        (name, kept)
        for name, value in given
        if name not in drop
        and not _resembles_own_header(name)
        and not (scope["type"] == "websocket" and name.startswith(_HANDSHAKE))
        and (kept := _remove_credentials(name, value, token.encode())) is not None
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


def remove_token(given: bytes, token: bytes) -> bytes:
    """A query, as it was sent, without the pairs whose value is the token or an access token."""
    return b"&".join(
        pair
        for pair in given.split(b"&")
        if not _is_credential(unquote_to_bytes(pair.partition(b"=")[2]), token)
    )


def response_headers(given: Iterable[tuple[bytes, bytes]], *, bodyless: bool) -> Headers:
    """The response headers for the client; `bodyless`: no body follows, whatever its length."""
    kept = [(name.lower(), value) for name, value in given]
    drop = _CONNECTION | _ORIGIN_WIDE | _connection_options(kept)
    if bodyless:
        drop |= {b"content-length"}
    return [
        (name, value)
        for name, value in kept
        if name not in drop and not (name == b"set-cookie" and _is_own_cookie(value))
    ]


def _connection_options(headers: Iterable[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """The extension headers that a `Connection` header declares hop-by-hop."""
    values = (value for name, value in headers if name == b"connection")
    words = {word.strip().lower() for value in values for word in value.split(b",")}
    return frozenset(
        word
        for word in words
        if word not in _END_TO_END and not word.startswith(_END_TO_END_PREFIXES)
    )


def _resembles_own_header(name: bytes) -> bool:
    """Whether a target may mistake it for a header of the proxy: CGI and WSGI treat `_` as `-`."""
    return b"_" in name and name.replace(b"_", b"-") in _CONNECTION | _SET_BY_PROXY | _FRAMING


def _remove_credentials(name: bytes, value: bytes, token: bytes) -> bytes | None:
    """The value without the credentials of the server; None if nothing else is in it."""
    if name == b"authorization":
        kind, _, secret = value.partition(b" ")
        ours = kind.lower() == b"bearer" and _is_credential(secret.strip(), token)
        return None if ours else value
    if name == b"cookie":
        kept = [
            part.strip() for part in value.split(b";") if part.strip() and not _is_own_cookie(part)
        ]
        return b"; ".join(kept) or None
    if name == b"referer":
        address, _, query = value.partition(b"?")
        rest = remove_token(query, token)
        return b"%s?%s" % (address, rest) if rest else address
    return value


def _is_credential(value: bytes, token: bytes) -> bool:
    """Whether it is the server's token, or has the form of an access token of any Clew server."""
    return hmac.compare_digest(value, token) or is_access_token(value.decode("latin-1"))


def _is_own_cookie(cookie: bytes) -> bool:
    """A cookie without a name is sent as its value alone, so `=clew-x=1` sets `clew-x`."""
    return cookie.lstrip(b" \t=").lower().startswith(_COOKIES)
