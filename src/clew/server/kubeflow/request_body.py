"""JSON bodies as Kubeflow's routes take them: any object, whose fields `workloads` checks."""

from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Header, Request
from starlette.exceptions import HTTPException

from clew.bounded_documents import load_json
from clew.documents.document import Document
from clew.errors import UsageError
from clew.server.v1.document_router import REFERENCE

_TYPE = "application/json"
_MAX_BYTES = 2 << 20
"""YAML of a resource may be 1 MiB long, and longer as JSON."""


async def _read_body(request: Request) -> dict[str, Any]:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != _TYPE:
        raise UsageError("the request must contain JSON", hint=f"Content-Type: {_TYPE}")
    data = b""
    async for chunk in request.stream():
        data += chunk
        if len(data) > _MAX_BYTES:
            raise HTTPException(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {_MAX_BYTES} bytes"
            )
    found = load_json(data, "the body")
    if not isinstance(found, dict):
        raise UsageError("the body must be a JSON object")
    return found


Body = Annotated[dict[str, Any], Depends(_read_body)]

RequestKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Any text that names this request: repeated, it creates nothing again.",
    ),
]


def describe_body(form: type[Document]) -> dict[str, Any]:
    """The OpenAPI description of such a body."""
    schema = {"$ref": REFERENCE.format(name=form.__name__)}
    return {"requestBody": {"required": True, "content": {_TYPE: {"schema": schema}}}}
