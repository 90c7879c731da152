"""The answer to an AdmissionReview of a Pod. No IO.

The API server calls for selected Pods only: the webhook's configuration says which. A Pod that
cannot be changed as asked is refused with the reason, because the user has asked for it.
"""

import base64
from collections.abc import Callable
from typing import Any

import msgspec

from clew.errors import ClewError, UsageError
from clew.kube.objects import Json, dig

MAX_BODY_BYTES = 8 << 20
_FORBIDDEN, _INVALID = 403, 422


class Malformed(Exception):
    """The body is no AdmissionReview of a Pod."""


Change = Callable[[Json], Json | None]
"""A Pod as it should be; None: as it is. Raises ClewError for one that is refused."""


def review(body: bytes, change: Change) -> dict[str, Any]:
    """The AdmissionReview to answer with; raises Malformed."""
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"it is not JSON: {error}") from error
    request = dig(document, "request")
    uid = dig(request, "uid")
    if dig(document, "apiVersion") != "admission.k8s.io/v1" or not isinstance(uid, str):
        raise Malformed("it is no AdmissionReview of admission.k8s.io/v1")
    pod = dig(request, "object")
    if dig(request, "operation") != "CREATE" or dig(request, "kind", "kind") != "Pod":
        response: dict[str, Any] = {"allowed": True}
    elif not isinstance(dig(pod, "spec"), dict):
        raise Malformed("it has no Pod")
    else:
        response = _decide(pod, change)
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": uid, **response},
    }


def _decide(pod: Json, change: Change) -> dict[str, Any]:
    try:
        changed = change(pod)
    except ClewError as error:
        hint = f"; {error.hint}" if error.hint else ""
        code = _INVALID if isinstance(error, UsageError) else _FORBIDDEN
        return {"allowed": False, "status": {"code": code, "message": f"{error.message}{hint}"}}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Malformed(f"it has a Pod of another form: {type(error).__name__}") from error
    if changed is None:
        return {"allowed": True}
    operations = [
        {"op": "add", "path": f"/spec/{field}", "value": changed["spec"][field]}
        for field in ("initContainers", "containers", "ephemeralContainers", "volumes")
        if changed["spec"].get(field) != pod["spec"].get(field)
    ]
    if not operations:
        return {"allowed": True}
    patch = msgspec.json.encode(operations)
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(patch).decode(),
    }
