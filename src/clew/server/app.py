"""The routes of the server, put together."""

from __future__ import annotations

import logging
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from clew.errors import ClewError
from clew.server.identity import Identity
from clew.server.intake import Intake
from clew.server.problems import answer, of_error
from clew.server.service import Service
from clew.server.v1 import ingest

_LOG = logging.getLogger("clew.server")


def application(service: Service) -> ASGIApp:
    """Everything that the server answers."""
    app = FastAPI(openapi_url=None)
    app.state.service = service
    app.state.intake = Intake(service.folder.store)
    app.add_exception_handler(ClewError, _failed)
    app.add_exception_handler(RequestValidationError, _malformed)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _broken)
    app.add_route("/healthz", _healthy)
    app.include_router(ingest.router)
    return Identity(app, token=service.token, project=service.folder.uid)


def _healthy(_: Request) -> Response:
    return Response("ok\n", media_type="text/plain")


async def _failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, ClewError)
    return of_error(request.url.path, error)


async def _malformed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return answer(request.url.path, 422, "malformed", f"{where}: {first['msg']}")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    headers = error.headers
    return answer(request.url.path, error.status_code, code, str(error.detail), headers=headers)


async def _broken(request: Request, error: Exception) -> Response:
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return answer(request.url.path, 500, "failed", "the server failed; its log says how")
