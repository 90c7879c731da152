"""Parameter types, dependencies and error descriptions that routes share."""

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Depends, Header, Path, Query, Request
from pydantic import StringConstraints

from clew.api.local.project import LocalProject
from clew.errors import NotAllowed
from clew.server.identity.authentication import uses_access_token
from clew.server.identity.namespace_access import namespaces_of
from clew.server.server_state import Service
from clew.workloads.backend import Backend
from clew.workloads.forms.spawner_config import FormDefaults

Text = Annotated[
    str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]*$", strict=True)
]
"""A name or path. Neither databases nor paths can contain a zero byte."""
Target = Annotated[
    Text,
    Query(
        description="An execution `e2`, a process `e2.p3`, a version `e2:PATH`, a run `r1`, a task"
        " `r1/train`, an artifact `r1/train:model`, bytes `blake3:HEX`, or a path. In a"
        " cluster also `pvc://NS/CLAIM/PATH`, `s3://BUCKET/KEY`, `pod/NS/NAME`,"
        " `configmap/NS/NAME`, `image@sha256:HEX` or `pkg:TYPE/NAME`.",
        examples=["e1"],
    ),
]
Limit = Annotated[int, Query(ge=1, le=1000, description="The maximum number of results.")]

IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern=r"^[!-~]{1,200}$",
        description="Made up by the client. A second request with the same key makes nothing, and"
        " is answered as the first one was; for a day.",
    ),
]


Namespace = Annotated[
    str, Path(description="On one machine, `local` is the only one.", examples=["local"])
]


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_service)]


def _project(request: Request, service: ServiceDep) -> Iterator[LocalProject]:
    with service.project(namespaces_of(service, request)) as project:
        yield project


ProjectDep = Annotated[LocalProject, Depends(_project, scope="function")]
"""Released when the route returns, not only after a slow client has read the response."""


def _owner(request: Request) -> None:
    if uses_access_token(request.scope):
        raise NotAllowed(
            "an access token cannot do this",
            hint="use the web app, or the project's own token: .clew/token",
        )


Owner = Depends(_owner)
"""Refuses requests with a personal access token: a token that leaked must not make others."""


def _backend(service: ServiceDep) -> Backend:
    return service.workloads()


BackendDep = Annotated[Backend, Depends(_backend)]


def _form_defaults(service: ServiceDep) -> FormDefaults:
    service.workloads()
    return service.spawner.defaults


FormDefaultsDep = Annotated[FormDefaults, Depends(_form_defaults)]
"""The administrator's defaults of the notebook form, as the file has them now."""

PROBLEM = "application/problem+json"
_DESCRIPTIONS = {
    400: "The request is invalid.",
    401: "No valid token was sent.",
    403: "It is not allowed.",
    404: "It does not exist.",
    405: "The method is not supported.",
    408: "The request body was not received in time.",
    409: "It cannot be done now.",
    413: "The request is too large.",
    422: "The request is malformed.",
    500: "The server failed.",
    503: "There are too many requests, or the database does not answer; Retry-After says when to"
    " try again.",
    507: "The disk is full.",
}
PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}},
    }
    for status, description in _DESCRIPTIONS.items()
}
"""The error responses of every route."""
