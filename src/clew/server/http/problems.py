"""Error responses: problem+json on our own routes, Kubeflow's format on Kubeflow's routes.

Every `ClewError` has a code, an HTTP status, a message and a hint. Any other exception is a bug:
its details go to the log, not to the client.
"""

import re
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse

from clew.errors import ClewError
from clew.viewer import problems

KUBEFLOW_PREFIXES = ("/apis/v2beta1", "/pipeline/apis/v2beta1")
"""The path prefixes that Kubeflow's client uses."""
WEB_APP_PREFIXES = ("/jupyter/", "/tensorboards/", "/volumes/")
"""The path prefixes of Kubeflow's web apps; our own pages have some of these addresses, too."""
_WEB_APP_API = re.compile(r"/(jupyter|tensorboards|volumes)/(api/.*|info)", re.DOTALL)
_GRPC_CODES = {
    400: 3, 401: 16, 403: 7, 404: 5, 405: 12, 408: 4, 409: 6, 413: 3, 429: 8, 501: 12, 503: 14,
}  # fmt: skip
_GRPC_INTERNAL = 13
_RETRY_AFTER = "2"
"""Seconds, while the database does not answer."""


def problem_response(
    path: str,
    status: int,
    code: str,
    message: str,
    *,
    hint: str = "",
    headers: Mapping[str, str] | None = None,
    user: str | None = None,
) -> JSONResponse:
    """An error response, in the format of the API that `path` belongs to. `user`: who made the
    request, if that is known."""
    if _WEB_APP_API.fullmatch(path):
        text = f"{message} ({hint})" if hint else message
        failure = {"success": False, "log": text, "status": status, "user": user}
        failure |= {"code": code, "title": message, "hint": hint}
        return problems.AsciiJSONResponse(failure, status, headers)
    if path.startswith(KUBEFLOW_PREFIXES):
        text = f"{message} ({hint})" if hint else message
        document = {"error": text, "code": _GRPC_CODES.get(status, _GRPC_INTERNAL), "message": text}
        return problems.AsciiJSONResponse({**document, "details": []}, status, headers)
    return problems.problem_response(status, code, message, hint=hint, headers=headers)


def error_response(path: str, error: ClewError, *, user: str | None = None) -> JSONResponse:
    status = error.http_status
    headers = {"Retry-After": _RETRY_AFTER} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}
    return problem_response(
        path, status, error.code, error.message, hint=error.hint, headers=headers, user=user
    )
