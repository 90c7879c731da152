"""Kubeflow's protection against cross-site requests: a page repeats a cookie in a header.

Every page of the web app sets the cookie, and only a page of this host can read it. Authentication
also checks the origin of each request with a session, which is stronger: ports of one host share
their cookies. Requests with the token need neither, since no browser sends it by itself.
"""

import hmac
import re
import secrets

from fastapi import Request, Response

from clew.errors import NotAllowed
from clew.server.identity.authentication import is_secure, session_of
from clew.viewer.origin_check import SAFE_METHODS

COOKIE = "XSRF-TOKEN"
HEADER = "X-XSRF-TOKEN"
_VALUE = re.compile(r"[\w-]{43}", re.ASCII)


def set_csrf_cookie(request: Request, response: Response) -> None:
    """Let the page make requests. A value that the browser has stays: other pages may use it."""
    value = request.cookies.get(COOKIE, "")
    if not _VALUE.fullmatch(value):
        value = secrets.token_urlsafe(32)
    response.set_cookie(
        COOKIE, value, path="/", samesite="strict", secure=is_secure(request.scope), httponly=False
    )


def check_csrf(request: Request) -> None:
    """Refuse a request of a session that changes something and does not repeat the cookie."""
    if request.method in SAFE_METHODS or session_of(request.scope) is None:
        return
    cookie, header = request.cookies.get(COOKIE), request.headers.get(HEADER)
    if not cookie:
        raise NotAllowed(f"the cookie {COOKIE} is missing", hint="open a page of the app first")
    if not header or not hmac.compare_digest(cookie.encode(), header.encode()):
        raise NotAllowed(f"the header {HEADER} is not the cookie {COOKIE}", hint="reload the page")
