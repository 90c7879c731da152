"""JSON responses, which leave out empty fields, as Kubeflow's do."""

from typing import Any

import msgspec
from starlette.responses import Response

_EMPTY: tuple[object, ...] = (None, "", [], {})


def json_response(document: dict[str, Any]) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")


def empty_response() -> Response:
    return json_response({})


def without_empty(**fields: Any) -> dict[str, Any]:
    """The fields that are not empty."""
    return {name: value for name, value in fields.items() if value not in _EMPTY}


def grpc_status(message: str | None) -> dict[str, Any] | None:
    """An error message as a gRPC status with the code ABORTED."""
    return None if message is None else {"code": 10, "message": message}
