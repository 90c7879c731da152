"""Routes that answer with documents.

The return type of a route's function is its response in the OpenAPI description, too.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, get_args

import msgspec
from fastapi import APIRouter, Response

from clew.documents.document import Document, encode

REFERENCE = "#/components/schemas/{name}"


class DocumentRouter(APIRouter):
    """A router whose functions may return documents."""

    def add_api_route(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        signature = inspect.signature(endpoint, eval_str=True)
        kinds = get_args(signature.return_annotation) or (signature.return_annotation,)
        if all(isinstance(kind, type) and issubclass(kind, Document) for kind in kinds):
            status = options.get("status_code") or 200
            schemas = [{"$ref": REFERENCE.format(name=kind.__name__)} for kind in kinds]
            schema = {"schema": schemas[0] if len(schemas) == 1 else {"anyOf": schemas}}
            description = inspect.getdoc(kinds[0]) if len(kinds) == 1 else "Successful Response"
            responses = {status: {"description": description, "content": {_JSON: schema}}} | (
                options.get("responses") or {}
            )
            options |= {
                "response_class": Response,
                "response_model": None,
                "responses": responses,
            }
            endpoint = _answer_with_json(endpoint, signature, kinds, status)
        super().add_api_route(path, endpoint, **options)


_JSON = "application/json"


def _answer_with_json(
    endpoint: Callable[..., Document],
    signature: inspect.Signature,
    kinds: tuple[type[Document], ...],
    status: int,
) -> Callable[..., Response]:
    @wraps(endpoint)
    def answer(*args: Any, **kwargs: Any) -> Response:
        return Response(encode(endpoint(*args, **kwargs)), status, media_type=_JSON)

    answer.__dict__["__signature__"] = signature.replace(return_annotation=Response)
    answer.__dict__["documents"] = kinds
    return answer


def describe_documents(
    endpoints: Iterable[Callable[..., Any] | None], *, more: Iterable[type[Document]]
) -> dict[str, Any]:
    """The schemas of the documents that these functions return, and of `more`, by name."""
    kinds = {kind for endpoint in endpoints for kind in getattr(endpoint, "documents", ())}
    kinds |= set(more)
    _, schemas = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
    return schemas
