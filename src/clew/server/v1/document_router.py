"""Routes that answer with documents.

The return type of a route's function is its response in the OpenAPI description, too.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import msgspec
from fastapi import APIRouter, Response

from clew.documents.document import Document, encode
from clew.documents.problem import ProblemDetails

REFERENCE = "#/components/schemas/{name}"


class DocumentRouter(APIRouter):
    """A router whose functions may return documents."""

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        signature = inspect.signature(endpoint, eval_str=True)
        kind = signature.return_annotation
        if isinstance(kind, type) and issubclass(kind, Document):
            status = options.get("status_code") or 200
            schema = {"schema": {"$ref": REFERENCE.format(name=kind.__name__)}}
            responses = {
                status: {"description": inspect.getdoc(kind), "content": {_JSON: schema}}
            } | (options.get("responses") or {})
            options |= {
                "response_class": Response,
                "response_model": None,
                "responses": responses,
            }
            endpoint = _answer_with_json(endpoint, signature, kind, status)
        super().add_api_route(path, endpoint, **options)


_JSON = "application/json"


def _answer_with_json(
    endpoint: Callable[..., Document],
    signature: inspect.Signature,
    kind: type[Document],
    status: int,
) -> Callable[..., Response]:
    @wraps(endpoint)
    def answer(*args: Any, **kwargs: Any) -> Response:
        return Response(encode(endpoint(*args, **kwargs)), status, media_type=_JSON)

    answer.__dict__["__signature__"] = signature.replace(return_annotation=Response)
    answer.__dict__["document"] = kind
    return answer


def describe_documents(endpoints: Iterable[Callable[..., Any] | None]) -> dict[str, Any]:
    """The schemas of the documents that these functions return, and of errors, by name."""
    kinds = {kind for endpoint in endpoints if (kind := getattr(endpoint, "document", None))}
    kinds.add(ProblemDetails)
    _, schemas = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
    return schemas
