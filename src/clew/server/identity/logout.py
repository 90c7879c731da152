"""Logging out: ends the session of a browser."""

from fastapi import Request
from starlette.responses import PlainTextResponse, Response

from clew.server.http.problems import problem_response
from clew.server.identity.authentication import session_of, set_cookie


async def log_out(request: Request) -> Response:
    """End the session of this browser, also at the origin of the notebooks."""
    session = session_of(request.scope)
    if session is None:
        message = "there is no session to end: the request was made with the token"
        hint = "a new token ends all sessions"
        return problem_response("/logout", 400, "usage", message, hint=hint)
    await request.app.state.sessions.end(session)
    response = PlainTextResponse("You are logged out.\n", headers={"Cache-Control": "no-store"})
    for name in request.app.state.cookies:
        set_cookie(response, request.scope, name, "", same_site="strict")
    return response
