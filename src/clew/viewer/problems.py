"""Errors as HTTP says them: as everywhere in Clew, problem+json."""

from collections.abc import Mapping

from starlette.responses import JSONResponse

from clew.errors import ClewError


def problem_response(
    status: int,
    code: str,
    message: str,
    *,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    document = {"type": f"urn:clew:{code}", "title": message, "status": status, "code": code}
    return JSONResponse(
        {**document, "detail": hint}, status, headers, media_type="application/problem+json"
    )


def error_response(error: ClewError) -> JSONResponse:
    return problem_response(error.http_status, error.code, error.message, hint=error.hint)
