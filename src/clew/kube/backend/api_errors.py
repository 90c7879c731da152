"""Turn refusals of the Kubernetes API into errors with a plain sentence and a hint.

The sentence says what went wrong in words that also someone without knowledge of Kubernetes
understands, and then quotes Kubernetes, since only its message names the exact field or limit.
"""

import re
from collections.abc import Sequence

from clew.errors import (
    ClewError,
    Conflict,
    Exists,
    NotAllowed,
    NotFound,
    Unavailable,
    UsageError,
)
from clew.kube.objects import Object, dig

NOUNS = {
    "Notebook": "notebook",
    "Tensorboard": "TensorBoard",
    "PVCViewer": "volume viewer",
    "PersistentVolumeClaim": "volume",
    "PodDefault": "configuration",
    "VolumeSnapshot": "snapshot",
    "StorageClass": "storage class",
    "Pod": "Pod",
    "Event": "event",
    "Namespace": "namespace",
    "Node": "node",
}
"""The users' word for each kind."""

_REFUSALS: Sequence[tuple[str, str, str]] = (
    (
        "exceeded quota",
        "the quota of this namespace leaves no room for it",
        "ask for less, or stop or delete something else",
    ),
    (
        "(maximum|minimum) (cpu|memory|storage)",
        "the limits of this namespace do not allow this size",
        "choose a size within the limits that the message names",
    ),
    (
        "violates PodSecurity",
        "the security rules of this namespace forbid it",
        "choose another image or setting, or ask an administrator",
    ),
    (
        'User "[^"]*" cannot ',
        "the server is not allowed to do this on the cluster",
        "an administrator can grant it: see deploy/server/rbac.yaml",
    ),
    ("being terminated", "the namespace is being deleted", "choose another namespace"),
    (
        "admission webhook|admission policy|ValidatingAdmissionPolicy",
        "a rule of the cluster forbids it",
        "change what the message names, or ask an administrator",
    ),
    ("", "the cluster refuses it", "ask an administrator of the cluster"),
)
_GENERIC_NOT_FOUND = "the server could not find the requested resource"


def explain_refusal(status: int, answer: Object, kind: str, name: str = "") -> ClewError:
    """The error for an answer of the API. `answer`: its body, a Status of Kubernetes; empty if the
    body is none. `name`: of the resource; empty for a list."""
    message = str(answer.get("message") or f"HTTP status {status}")
    reason = str(answer.get("reason") or "")
    noun = NOUNS.get(kind, kind)
    what = f"the {noun} {name}" if name else f"a {noun}"
    if status == 404:
        return _not_found(answer, message, noun, name)
    if reason == "AlreadyExists":
        return Exists(f"there is already a {noun} {name}".rstrip(), hint="choose another name")
    if status == 409:
        return Conflict(f"{what} was changed meanwhile", hint="load it again and repeat the change")
    if status in (401, 403) or "admission webhook" in message:
        sentence, hint = _match_refusal(message)
        return NotAllowed(f"{sentence}: {message}", hint=hint)
    if status in (400, 422):
        return UsageError(
            f"{what} is not valid: {_without_prefix(message)}",
            hint="correct what the message names, and try again",
        )
    return Unavailable(
        f"the Kubernetes API cannot do this now: {message}", hint="try again in a moment"
    )


def explain_log_refusal(status: int, answer: Object, pod: str, container: str) -> ClewError:
    """The error if a log cannot be read; Conflict if the container has not started yet.

    A node that does not know a new Pod yet answers that it has no such log, which the API server
    passes on as if it did not know Pods at all.
    """
    message = str(answer.get("message"))
    unknown_to_node = status == 404 and message.startswith(_GENERIC_NOT_FOUND)
    if unknown_to_node or (status == 400 and "waiting to start" in message):
        return Conflict(f"the container {container} has not started yet", hint="try again later")
    return explain_refusal(status, answer, "Pod", pod)


def explain_failure(error: Exception) -> Unavailable:
    """The error if the API cannot be reached, or the settings for it cannot be read."""
    said = str(error) or type(error).__name__
    return Unavailable(f"the Kubernetes API does not answer: {said}", hint="try again in a moment")


def _not_found(answer: Object, message: str, noun: str, name: str) -> NotFound:
    missing = str(dig(answer, "details", "kind") or "")
    if message.startswith(_GENERIC_NOT_FOUND):
        return NotFound(
            f"this cluster has no {noun}s", hint="kubectl apply -k deploy/ installs their kinds"
        )
    if missing == "namespaces":
        return NotFound(
            f"there is no namespace {dig(answer, 'details', 'name')}",
            hint="choose another namespace",
        )
    return NotFound(
        f"there is no {noun} {name}".rstrip(), hint="it may have been deleted meanwhile"
    )


def _match_refusal(message: str) -> tuple[str, str]:
    return next((s, hint) for pattern, s, hint in _REFUSALS if re.search(pattern, message))


def _without_prefix(message: str) -> str:
    """Without `Notebook.kubeflow.org "x" is invalid:`, which our sentence says already."""
    return re.sub(r'^\S+ "[^"]*" is invalid: ', "", message)
