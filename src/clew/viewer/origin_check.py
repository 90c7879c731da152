"""Reject requests from pages of other origins (CSRF, DNS rebinding).

The viewer has no users. But a browser on the same machine can reach it, and so can every page in
that browser. So a request that changes something must come from a page of the same origin. A
viewer on loopback answers only to names of this machine, because a foreign name that resolves to
it would make a foreign page the same origin.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from clew.kube.backend_tokens import HEADER, is_token
from clew.viewer.problems import problem_response

_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))


def refuse_request(
    request: Request, names: Collection[str] | None, access_digest: str | None = None
) -> Response | None:
    """What is answered to a request that is not let in; `names`: those of this machine that it
    may be asked under, beside its own; None: any. `access_digest`: the SHA-256 of the access token
    that each request must carry."""
    given = request.headers.get(HEADER, "")
    if access_digest is not None and not is_token(given, access_digest):
        said = "this viewer is reached through the server only"
        return problem_response(
            403, "not-allowed", said, hint="clew server --on-cluster leads there"
        )
    host = request.headers.get("host", "")
    if names is not None and not (is_local(_name(host)) or _name(host) in names):
        said = f"this viewer is not known as {_name(host)[:100]}"
        return problem_response(421, "not-allowed", said, hint="clew viewer --known-as NAME")
    if request.method in _SAFE:
        return None
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "none")
    own = (f"http://{host}", f"https://{host}")
    ours = origin in own if origin else site in ("same-origin", "none")
    if not ours:
        return problem_response(
            403, "not-allowed", "another site's page cannot change anything here"
        )
    return None


def is_local(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _name(host: str) -> str:
    """Without the port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
