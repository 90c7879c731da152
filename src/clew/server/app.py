"""The routes of the server, put together."""

from __future__ import annotations

import re
from functools import lru_cache
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.routing import compile_path
from starlette.types import ASGIApp

from clew.errors import ClewError
from clew.server import home_page
from clew.server.http.access_log import AccessLog
from clew.server.http.client_limits import Limits, RequestLimiter
from clew.server.http.identity import Authentication, TokenLogin
from clew.server.http.page_headers import SecurityHeaders
from clew.server.http.problems import error_response, problem_response
from clew.server.http.request_heads import HeadCheck, parse_host
from clew.server.http.sessions import API_AUDIENCE, Sessions, apps_audience
from clew.server.ingest_limits import IngestTransfers
from clew.server.kfp.routes import router as kfp
from clew.server.metrics import Metrics
from clew.server.proxy.app_origin import AppHostCheck, AppLogin, AppOrigin, AppRedirect
from clew.server.proxy.routing import ROUTE_NAMES, PortRouter, Proxy, TargetRouter
from clew.server.service import Service
from clew.server.v1 import ingest, record_download, routes
from clew.server.v1.cli import content, queries, rerun_commands

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def build_app(service: Service, limits: Limits, proxy: Proxy, origin: AppOrigin | None) -> ASGIApp:
    """Everything that the server answers. `origin`: where targets are served, if there are any."""
    metrics = Metrics(service)
    sessions = Sessions(service)
    name = service.folder.uid[:8]
    cookie, apps_cookie = f"clew-{name}", f"clew-apps-{name}"
    app = FastAPI(openapi_url=None)
    app.state.service = service
    app.state.metrics = metrics
    app.state.intake = IngestTransfers(service.folder.store)
    app.state.sessions = sessions
    app.state.cookies = (cookie, apps_cookie)
    app.add_exception_handler(ClewError, _failed)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _broken)
    app.add_api_route("/healthz", _healthy, include_in_schema=False)
    app.add_api_route("/readyz", _ready, include_in_schema=False)
    app.add_api_route("/metrics", _measured, include_in_schema=False)
    app.add_api_route("/", home_page.show_home_page, include_in_schema=False)
    app.add_api_route("/logout", home_page.log_out, methods=["POST"], include_in_schema=False)
    app.include_router(kfp)
    for own in (ingest, record_download, queries, content, rerun_commands):
        app.include_router(own.router)
    routes.include(app)
    written = {
        getattr(route.original_route, "endpoint", None): route.path or ""
        for route in iter_route_contexts(app.routes)
    }
    ours = {(route.path or "/").split("/")[1] for route in iter_route_contexts(app.routes)}
    chosen = ours if proxy.chosen else None

    def known(app: ASGIApp) -> ASGIApp:
        return Authentication(
            app,
            token=service.token,
            sessions=sessions,
            cookie=cookie,
            audience=lambda _: API_AUDIENCE,
        )

    # Within the identity: who has none takes no place among the requests under way.
    limited = known(RequestLimiter(app, limits))
    login = TokenLogin(limited, token=service.token, sessions=sessions, cookie=cookie)
    away = proxy if origin is None else AppRedirect(origin, sessions, service.token, chosen)
    answering: ASGIApp = SecurityHeaders(TargetRouter(known(away), login, chosen))
    if origin is not None:
        behind = Authentication(
            AppHostCheck(proxy, origin, chosen),
            token=service.token,
            sessions=sessions,
            cookie=apps_cookie,
            audience=lambda scope: apps_audience(parse_host(scope)),
        )
        entry = AppLogin(behind, origin=origin, sessions=sessions, cookie=apps_cookie, ours=chosen)
        answering = PortRouter({origin.port: entry}, answering)
    return AccessLog(HeadCheck(answering), metrics, {**written, **ROUTE_NAMES})


def _healthy() -> Response:
    return Response("ok\n", media_type="text/plain")


def _ready(request: Request) -> Response:
    """Whether the database answers: only then is it of use to ask here."""
    service: Service = request.app.state.service
    try:
        with service.graph() as graph:
            graph.connection.one("SELECT 1")
    except ClewError as error:
        return problem_response("/readyz", 503, error.code, error.message, hint=error.hint)
    return Response("ok\n", media_type="text/plain")


def _measured(request: Request) -> Response:
    metrics: Metrics = request.app.state.metrics
    return Response(metrics.text(), headers={"Content-Type": _PROMETHEUS})


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, ClewError)
    return error_response(request.url.path, error)


async def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return problem_response(request.url.path, 422, "malformed", f"{where}: {first['msg']}")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(sorted(_methods(request)))
    return problem_response(
        request.url.path, error.status_code, code, str(error.detail), headers=headers
    )


def _methods(request: Request) -> set[str]:
    """All by which something can be asked at this address; each may have a route of its own."""
    path = request.url.path
    routes = [route for route in iter_route_contexts(request.app.routes) if route.path]
    found = [route for route in routes if _pattern(route.path or "").match(path)]
    written = [route for route in found if route.path == path]
    return {method for route in written or found for method in route.methods or ()}


@lru_cache(maxsize=1024)
def _pattern(path: str) -> re.Pattern[str]:
    return compile_path(path)[0]


async def _broken(request: Request, _: Exception) -> Response:
    return problem_response(request.url.path, 500, "failed", "the server failed; its log says how")
