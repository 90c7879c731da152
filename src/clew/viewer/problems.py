"""Error responses as problem+json, for the viewer and for the server's own routes."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse

from clew.errors import ClewError


class AsciiJSONResponse(JSONResponse):
    """Escapes all other characters: a message may quote input that is not valid UTF-8."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content).encode()


def problem_response(
    status: int,
    code: str,
    message: str,
    *,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    document = {"type": f"urn:clew:{code}", "title": message, "status": status, "code": code}
    return AsciiJSONResponse(
        {**document, "detail": hint}, status, headers, media_type="application/problem+json"
    )


def error_response(error: ClewError) -> JSONResponse:
    return problem_response(error.http_status, error.code, error.message, hint=error.hint)
