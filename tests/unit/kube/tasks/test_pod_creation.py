"""What is done about a Pod that the API server did not create."""

import pytest

from clew.errors import ClewError
from clew.kube.backend.api_errors import explain_refusal
from clew.kube.tasks.pod_creation import Reaction, choose_reaction, fits_quota


def refusal(status: int, message: str, reason: str = "") -> ClewError:
    return explain_refusal(status, {"message": message, "reason": reason}, "Pod", "p")


QUOTA = 'pods "p" is forbidden: exceeded quota: few, requested: {}, used: {}, limited: {}'


@pytest.mark.parametrize(
    ("error", "reaction"),
    [
        (refusal(403, QUOTA.format("pods=1", "pods=1", "pods=1")), Reaction.WAIT_FOR_ROOM),
        (
            refusal(403, QUOTA.format("requests.cpu=3", "requests.cpu=0", "requests.cpu=2")),
            Reaction.FAIL,
        ),
        (
            refusal(403, 'pods "p" is forbidden: violates PodSecurity "restricted:latest": allow…'),
            Reaction.RESTRICT,
        ),
        (
            refusal(403, 'pods "p" is forbidden: violates PodSecurity "baseline:latest": hostPath'),
            Reaction.FAIL,
        ),
        (refusal(403, 'User "x" cannot create resource "pods"'), Reaction.FAIL),
        (
            refusal(
                403,
                'pods "p" is forbidden: error looking up service account me/default: '
                'serviceaccount "default" not found',
            ),
            Reaction.WAIT,
        ),
        (
            refusal(409, "Operation cannot be fulfilled on resourcequotas", "Conflict"),
            Reaction.AGAIN,
        ),
        (refusal(422, "spec.tolerations[0].operator: Unsupported value"), Reaction.FAIL),
        (refusal(404, 'namespaces "me" not found', "NotFound"), Reaction.FAIL),
        (refusal(503, "apiserver is shutting down"), Reaction.WAIT),
        (refusal(429, "too many requests"), Reaction.WAIT),
    ],
)
def test_reactions(error: ClewError, reaction: Reaction) -> None:
    assert choose_reaction(error, restricted=False) is reaction


def test_a_pod_with_the_settings_of_restricted_is_refused_once() -> None:
    error = refusal(403, 'pods "p" is forbidden: violates PodSecurity "restricted:latest": root')
    assert choose_reaction(error, restricted=True) is Reaction.FAIL


@pytest.mark.parametrize(
    ("requested", "limited", "fits"),
    [
        ("pods=1", "pods=1", True),
        ("limits.memory=3Gi,pods=1", "limits.memory=2Gi,pods=10", False),
        ("requests.cpu=1500m", "requests.cpu=2", True),
        ("requests.cpu=2500m", "requests.cpu=2", False),
        ("requests.cpu=odd", "requests.cpu=2", True),
        ("pods", "pods", True),
    ],
)
def test_a_quota_that_never_has_room(requested: str, limited: str, fits: bool) -> None:
    assert fits_quota(QUOTA.format(requested, "pods=1", limited)) is fits


def test_a_message_that_says_nothing_about_room() -> None:
    assert fits_quota("exceeded quota")
