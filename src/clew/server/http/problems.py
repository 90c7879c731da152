"""Errors as HTTP says them: problem+json on our own routes, Kubeflow's shape on Kubeflow's.

Every error of Clew carries its code, its status, a sentence and a hint; what is no error of ours
is a bug, told in the log and not to the client.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import JSONResponse

from clew.errors import ClewError

KUBEFLOW_PREFIXES = ("/apis/v2beta1", "/pipeline/apis/v2beta1")
"""Where Kubeflow's own client asks."""
_GRPC = {400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 408: 4, 409: 6, 413: 3, 429: 8, 501: 12, 503: 14}
_UNKNOWN = 13
_AGAIN = "2"
"""Seconds after which a database may be back."""


class _Escaped(JSONResponse):
    """What somebody typed may be no UTF-8, and is told of all the same."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode()


def problem_response(
    path: str,
    status: int,
    code: str,
    message: str,
    *,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """An error, in the shape that whoever asks at `path` reads."""
    if path.startswith(KUBEFLOW_PREFIXES):
        said = f"{message} ({hint})" if hint else message
        document = {"error": said, "code": _GRPC.get(status, _UNKNOWN), "message": said}
        return _Escaped({**document, "details": []}, status, headers)
    document = {"type": f"urn:clew:{code}", "title": message, "status": status, "code": code}
    return _Escaped(
        {**document, "detail": hint}, status, headers, media_type="application/problem+json"
    )


def error_response(path: str, error: ClewError) -> JSONResponse:
    headers = {"Retry-After": _AGAIN} if error.http_status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return problem_response(
        path, error.http_status, error.code, error.message, hint=error.hint, headers=headers
    )
