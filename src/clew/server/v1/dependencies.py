"""What the routes have in common: what they are given, and how they fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from pydantic import StringConstraints

from clew.api.local.project import LocalProject
from clew.server.service import Service

Text = Annotated[
    str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]*$", strict=True)
]
"""Words that name something: no database and no path holds a zero byte."""
Target = Annotated[
    Text,
    Query(
        description="An execution `e2`, a process `e2.p3`, a version `e2:PATH`, a run `r1`, a task"
        " `r1/train`, an artifact `r1/train:model`, bytes `blake3:HEX`, or a path.",
        examples=["e1"],
    ),
]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


ServiceDep = Annotated[Service, Depends(_service)]


def _project(service: ServiceDep) -> Iterator[LocalProject]:
    with service.project() as project:
        yield project


ProjectDep = Annotated[LocalProject, Depends(_project, scope="function")]
"""Free for others as soon as the answer is known, however slowly that is taken."""

PROBLEM = "application/problem+json"
_SAID = {
    400: "It cannot be asked like that.",
    401: "No valid token was sent.",
    403: "It is not allowed.",
    404: "There is no such thing.",
    405: "Not in this way.",
    408: "The request did not come to its end in time.",
    409: "It cannot be done now.",
    413: "The request is too large.",
    422: "The request is malformed.",
    500: "The server failed.",
    503: "Too many requests are under way, or the database does not answer; Retry-After says when"
    " to come again.",
    507: "The disk is full.",
}
PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {
        "description": said,
        "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, said in _SAID.items()
}
"""How any route may fail."""
