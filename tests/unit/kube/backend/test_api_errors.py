"""Refusals of the Kubernetes API, in words for users."""

from typing import Any

import pytest

from clew.errors import (
    ClewError,
    Conflict,
    Exists,
    NotAllowed,
    NotFound,
    Unavailable,
    UsageError,
)
from clew.kube.backend.api_errors import explain_log_refusal, explain_refusal

QUOTA = 'persistentvolumeclaims "big" is forbidden: exceeded quota: small, requested: storage=9Gi'
RIGHTS = 'secrets is forbidden: User "system:serviceaccount:clew:clew-server" cannot list'
INVALID = 'Notebook.kubeflow.org "a.b" is invalid: metadata.name: Invalid value: "a.b": no dots'
WEBHOOK = 'admission webhook "policy.example.org" denied the request: no such image'
TERMINATING = "unable to create new content in namespace old because it is being terminated"


@pytest.mark.parametrize(
    ("status", "answer", "expected", "words"),
    [
        (403, {"message": QUOTA}, NotAllowed, "the quota of this namespace leaves no room"),
        (403, {"message": RIGHTS}, NotAllowed, "the server is not allowed to do this"),
        (403, {"message": WEBHOOK}, NotAllowed, "a rule of the cluster forbids it"),
        (400, {"message": WEBHOOK}, NotAllowed, "a rule of the cluster forbids it"),
        (403, {"message": TERMINATING}, NotAllowed, "the namespace is being deleted"),
        (403, {"message": "no"}, NotAllowed, "the cluster refuses it"),
        (404, {"message": 'notebooks "first" not found'}, NotFound, "there is no notebook first"),
        (
            404,
            {"message": "the server could not find the requested resource"},
            NotFound,
            "this cluster has no notebooks",
        ),
        (
            404,
            {"message": "x", "details": {"kind": "namespaces", "name": "gone"}},
            NotFound,
            "there is no namespace gone",
        ),
        (409, {"reason": "AlreadyExists"}, Exists, "there is already a notebook first"),
        (409, {"reason": "Conflict"}, Conflict, "the notebook first was changed meanwhile"),
        (422, {"message": INVALID}, UsageError, "the notebook first is not valid: metadata.name"),
        (500, {"message": "etcd is full"}, Unavailable, "etcd is full"),
        (503, {}, Unavailable, "HTTP status 503"),
    ],
)
def test_each_refusal_has_a_sentence(
    status: int, answer: dict[str, Any], expected: type[ClewError], words: str
) -> None:
    found = explain_refusal(status, answer, "Notebook", "first")
    assert type(found) is expected
    assert words in found.message
    assert found.hint


def test_the_words_of_kubernetes_are_quoted() -> None:
    assert QUOTA in explain_refusal(403, {"message": QUOTA}, "PersistentVolumeClaim").message


def test_a_container_that_has_not_started_has_no_log_yet() -> None:
    waiting = {"message": 'container "c" in pod "p" is waiting to start: ContainerCreating'}
    assert isinstance(explain_log_refusal(400, waiting, "p", "c"), Conflict)
    unknown = {"message": "the server could not find the requested resource ( pods/log p)"}
    assert isinstance(explain_log_refusal(404, unknown, "p", "c"), Conflict)
    other = {"message": "container x is not valid for pod p"}
    assert isinstance(explain_log_refusal(400, other, "p", "x"), UsageError)
