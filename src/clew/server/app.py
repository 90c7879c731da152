"""Builds the ASGI application of the server: its routes, wrapped in the middleware."""

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
from clew.server import web_app
from clew.server.catalogue.activities.index import ActivityIndex
from clew.server.http.access_log import AccessLog
from clew.server.http.client_limits import Limits, RequestLimiter
from clew.server.http.page_headers import SecurityHeaders
from clew.server.http.problems import error_response, problem_response
from clew.server.http.request_head_check import HeadCheck, parse_host
from clew.server.identity.access_tokens import AccessTokens
from clew.server.identity.authentication import Authentication, TokenLogin
from clew.server.identity.logout import log_out
from clew.server.identity.sessions import API_AUDIENCE, Sessions, apps_audience
from clew.server.ingest_transfers import IngestTransfers
from clew.server.kfp.routes import router as kfp
from clew.server.kubeflow.routes import router as kubeflow
from clew.server.logs.log_reader import LogReader
from clew.server.metrics import Metrics, respond_with_metrics
from clew.server.proxy.app_origin import AppHostCheck, AppLogin, AppOrigin, AppRedirect
from clew.server.proxy.routing import ROUTE_NAMES, PortRouter, Proxy, TargetRouter
from clew.server.server_state import Service
from clew.server.storage_meter import StorageMeter
from clew.server.v1 import ingest, record_download, routes
from clew.server.v1.cli import content, queries, rerun_commands
from clew.server.v1.runs.run_progress import database_version


def build_app(service: Service, limits: Limits, proxy: Proxy, origin: AppOrigin | None) -> ASGIApp:
    """The whole application. `origin`: where proxied targets are served; None without targets."""
    metrics = Metrics(service)
    sessions = Sessions(service)
    access_tokens = AccessTokens(service)
    suffix = service.directory.uid[:8]
    cookie, apps_cookie = f"clew-{suffix}", f"clew-apps-{suffix}"
    app = FastAPI(openapi_url=None)
    app.state.service = service
    app.state.metrics = metrics
    app.state.intake = IngestTransfers(service.directory.store)
    app.state.sessions = sessions
    app.state.access_tokens = access_tokens
    app.state.activity_index = ActivityIndex(lambda: database_version(service))
    app.state.logs = LogReader()
    app.state.storage = StorageMeter(service)
    app.state.cookies = (cookie, apps_cookie)
    app.state.apps = origin
    app.add_exception_handler(ClewError, _handle_clew_error)
    app.add_exception_handler(RequestValidationError, _handle_validation_error)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    app.add_exception_handler(Exception, _handle_unexpected_error)
    app.add_api_route("/healthz", _healthz, include_in_schema=False)
    app.add_api_route("/readyz", _readyz, include_in_schema=False)
    app.add_api_route("/metrics", respond_with_metrics, include_in_schema=False)
    app.add_api_route("/logout", log_out, methods=["POST"], include_in_schema=False)
    app.include_router(kfp)
    for module in (ingest, record_download, queries, content, rerun_commands):
        app.include_router(module.router)
    routes.include(app)
    app.include_router(kubeflow)
    web_app.include(app)
    route_paths = {
        getattr(route.original_route, "endpoint", None): route.path or ""
        for route in iter_route_contexts(app.routes)
    }
    first_segments = {
        (route.path or "/").split("/")[1] for route in iter_route_contexts(app.routes)
    }
    # Targets that are chosen by path must not hide the server's own routes.
    own_segments = first_segments if proxy.custom_prefixes else None

    def authenticated(app: ASGIApp) -> ASGIApp:
        return Authentication(
            app,
            token=service.token,
            access_tokens=access_tokens,
            sessions=sessions,
            cookie=cookie,
            audience=lambda _: API_AUDIENCE,
            log_in=True,
        )

    # Authentication comes first: unauthenticated requests do not count towards the limits.
    limited = authenticated(RequestLimiter(app, limits))
    login = TokenLogin(limited, token=service.token, sessions=sessions, cookie=cookie)
    targets = (
        proxy if origin is None else AppRedirect(origin, sessions, service.token, own_segments)
    )
    handler: ASGIApp = SecurityHeaders(TargetRouter(authenticated(targets), login, own_segments))
    if origin is not None:
        apps = Authentication(
            AppHostCheck(proxy, origin, own_segments),
            token=service.token,
            access_tokens=access_tokens,
            sessions=sessions,
            cookie=apps_cookie,
            audience=lambda scope: apps_audience(parse_host(scope)),
        )
        apps_login = AppLogin(
            apps, origin=origin, sessions=sessions, cookie=apps_cookie, own_prefixes=own_segments
        )
        handler = PortRouter({origin.port: apps_login}, handler)
    return AccessLog(HeadCheck(handler), metrics, {**route_paths, **ROUTE_NAMES})


def _healthz() -> Response:
    return Response("ok\n", media_type="text/plain")


def _readyz(request: Request) -> Response:
    """Ready means that the database answers: without it most requests fail."""
    service: Service = request.app.state.service
    try:
        with service.graph() as graph:
            graph.connection.row("SELECT 1")
    except ClewError as error:
        return problem_response("/readyz", 503, error.code, error.message, hint=error.hint)
    return Response("ok\n", media_type="text/plain")


async def _handle_clew_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ClewError)
    return error_response(request.url.path, error, user=_user(request))


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    location = ".".join(str(part) for part in first["loc"])
    return problem_response(request.url.path, 422, "malformed", f"{location}: {first['msg']}")


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND and web_app.is_of_browser(request):
        return web_app.show_page(request, 404)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers["Allow"] = ", ".join(sorted(_allowed_methods(request)))
    return problem_response(
        request.url.path,
        error.status_code,
        code,
        str(error.detail),
        headers=headers,
        user=_user(request),
    )


def _allowed_methods(request: Request) -> set[str]:
    """The methods of all routes that match this path: each method may have its own route."""
    path = request.url.path
    routes = [route for route in iter_route_contexts(request.app.routes) if route.path]
    matching = [route for route in routes if _pattern(route.path or "").match(path)]
    exact = [route for route in matching if route.path == path]
    return {method for route in exact or matching for method in route.methods or ()}


@lru_cache(maxsize=1024)
def _pattern(path: str) -> re.Pattern[str]:
    return compile_path(path)[0]


async def _handle_unexpected_error(request: Request, _: Exception) -> Response:
    message = "the server failed; see its log"
    return problem_response(request.url.path, 500, "failed", message, user=_user(request))


def _user(request: Request) -> str | None:
    """The user who made the request: only authenticated requests get here."""
    service: Service = request.app.state.service
    return None if service.backend is None else service.backend.user
