"""Who may connect to a Pod: the server, the operator, and whom the operator was told of."""

import pytest
from tests.unit.kube.sample_resources import (
    as_child,
    cluster_state,
    notebook,
    of_kind,
    tensorboard,
    viewer,
)

from clew.kube.cluster_cache import list_possible_parents
from clew.kube.controller.options import GATEWAY, Options
from clew.kube.controller.reconciler import DECIDE
from clew.kube.objects import Json, Key
from clew.kube.resources.network_policies import parse_peer

RESOURCES = [notebook(), tensorboard("pvc://logs"), viewer()]
OWN = {"matchLabels": {"kubernetes.io/metadata.name": "clew"}}


def children(resource: Json, options: Options) -> tuple[Json, ...]:
    return DECIDE[resource["kind"]](resource, cluster_state(), options).children


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda r: str(r["kind"]))
def test_each_kind_has_a_policy_for_its_own_pods(resource: Json) -> None:
    made = children(resource, Options(allow_from=(GATEWAY,)))
    kinds = [child["kind"] for child in made]
    assert kinds.index("NetworkPolicy") < len(kinds) - 1, "it is there before the Pod"
    policy, workload = of_kind(made, "NetworkPolicy"), made[-1]
    selected = policy["spec"]["podSelector"]["matchLabels"]
    assert selected.items() <= workload["spec"]["template"]["metadata"]["labels"].items()
    assert policy["spec"]["policyTypes"] == ["Ingress"], "what it asks for stays open"
    [rule] = policy["spec"]["ingress"]
    assert "ports" not in rule
    own, gateway = rule["from"]
    assert own["namespaceSelector"] == OWN
    [names] = own["podSelector"]["matchExpressions"]
    assert names["values"] == ["clew-server", "clew-operator"]
    assert gateway == parse_peer(GATEWAY)
    [owner] = policy["metadata"]["ownerReferences"]
    assert owner["uid"] == resource["metadata"]["uid"]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda r: str(r["kind"]))
def test_a_change_of_a_policy_concerns_its_resource(resource: Json) -> None:
    policy = of_kind(children(resource, Options()), "NetworkPolicy")
    key = Key(resource["kind"], "me", resource["metadata"]["name"])
    assert key in set(list_possible_parents("me", "NetworkPolicy", policy["metadata"]["name"]))
    assert not list(list_possible_parents("me", "NetworkPolicy", resource["metadata"]["name"]))


def test_another_s_policy_of_that_name_is_not_touched() -> None:
    other = {"kind": "NetworkPolicy", "metadata": {"name": "clew-first", "namespace": "me"}}
    decision = DECIDE["Notebook"](notebook(), cluster_state(as_child(other)), Options())
    assert decision.children == ()
    assert decision.status["conditions"][0]["reason"] == "NameInUse"


@pytest.mark.parametrize(
    ("text", "peer"),
    [
        ("10.1.0.0/16", {"ipBlock": {"cidr": "10.1.0.0/16"}}),
        ("10.1.0.1", {"ipBlock": {"cidr": "10.1.0.1/32"}}),
        ("fd00::/8", {"ipBlock": {"cidr": "fd00::/8"}}),
        ("clew", {"namespaceSelector": OWN}),
        (
            "clew/app.kubernetes.io/name=x",
            {
                "namespaceSelector": OWN,
                "podSelector": {"matchLabels": {"app.kubernetes.io/name": "x"}},
            },
        ),
    ],
)
def test_a_peer_is_a_namespace_pods_of_it_or_addresses(text: str, peer: Json) -> None:
    assert parse_peer(text) == peer
