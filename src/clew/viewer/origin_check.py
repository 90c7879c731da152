"""Reject requests from pages of other origins (CSRF, DNS rebinding).

The viewer has no users. But a browser on the same machine can reach it, and so can every page in
that browser. So a request that changes something must come from a page of the same origin. A
viewer on loopback answers only to names of this machine, because a foreign name that resolves to
it would make a foreign page the same origin.
"""

import ipaddress
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from clew.kube.workload_tokens import HEADER, is_token
from clew.viewer.problems import problem_response

SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))


def refuse_request(
    request: Request, names: Collection[str] | None, access_digest: str | None = None
) -> Response | None:
    """The response to a request that is refused; None if it is allowed.

    `names`: host names that the viewer answers to, besides those of this machine; None: any.
    `access_digest`: the SHA-256 of the access token that each request must carry."""
    token = request.headers.get(HEADER, "")
    if access_digest is not None and not is_token(token, access_digest):
        message = "this viewer can be reached through the server only"
        return problem_response(
            403, "not-allowed", message, hint="open it from the pages of clew server --on-cluster"
        )
    name = _name(request.headers.get("host", ""))
    if names is not None and not (is_local(name) or name in names):
        message = f"this viewer does not serve the host name {name[:100]}"
        return problem_response(421, "not-allowed", message, hint="clew viewer --known-as NAME")
    if request.method not in SAFE_METHODS and is_cross_origin(request.headers):
        message = "a page of another origin cannot change anything here"
        return problem_response(403, "not-allowed", message)
    return None


def is_cross_origin(headers: Mapping[str, str], *, https_only: bool = False) -> bool | None:
    """Whether a page of another origin made the request; None: the browser does not say.

    Browsers send `Origin` with every WebSocket, every unsafe method and every CORS request, and
    `Sec-Fetch-…` with every request, but only over HTTPS or to localhost."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is not None:
        host = headers.get("host", "").lower()
        same = (f"https://{host}",) if https_only else (f"https://{host}", f"http://{host}")
        return origin.lower() not in same
    return None if site is None else site not in ("same-origin", "none")


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
