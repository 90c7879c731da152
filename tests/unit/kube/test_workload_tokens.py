"""Who is let in: the token of one resource is no other's, and the Pod knows its digest only."""

import json

import pytest
from tests.unit.kube.sample_resources import cluster_state, notebook, of_kind, viewer

from clew.kube.controller.options import Istio, Options
from clew.kube.objects import Json, Key
from clew.kube.proxy_route import read_route
from clew.kube.resources import notebooks, viewers
from clew.kube.workload_tokens import (
    HEADER,
    VARIABLE,
    derive_token,
    headers_for,
    is_token,
    token_digest,
)

KEY = "a key"
OPTIONS = Options(istio=Istio(), access_key=KEY)
FIRST = Key("Notebook", "me", "first")


@pytest.mark.parametrize(
    ("key", "resource", "uid"),
    [
        ("another key", FIRST, "u"),
        (KEY, FIRST._replace(kind="PVCViewer"), "u"),
        # A Service can claim any owner, so its namespace counts and not only the owner's uid.
        (KEY, FIRST._replace(namespace="others"), "u"),
        (KEY, FIRST._replace(name="second"), "u"),
        (KEY, FIRST, "another uid"),
    ],
)
def test_a_token_is_one_resource_s_alone(key: str, resource: Key, uid: str) -> None:
    token = derive_token(KEY, FIRST, "u")
    assert is_token(token, token_digest(token))
    assert not is_token(derive_token(key, resource, uid), token_digest(token))


@pytest.mark.parametrize("given", ["", "x", "\xff", "token " * 100])
def test_other_text_is_not_a_token(given: str) -> None:
    assert not is_token(given, token_digest(derive_token(KEY, FIRST, "u")))


def test_a_notebook_s_pod_knows_the_digest_and_no_child_but_the_route_the_token() -> None:
    resource = notebook()
    made = notebooks.decide(resource, cluster_state(), OPTIONS).children
    token = headers_for(resource, KEY)[HEADER]
    pod = of_kind(made, "StatefulSet")["spec"]["template"]["spec"]
    assert {"name": VARIABLE, "value": token_digest(token)} in pod["containers"][0]["env"]
    assert read_route(of_kind(made, "Service")).access
    route = of_kind(made, "VirtualService")["spec"]["http"][0]
    assert route["headers"]["request"]["set"] == {HEADER: token}
    assert knowing(made, token) == {"VirtualService"}


def test_a_viewer_gets_the_digest() -> None:
    resource = viewer()
    made = viewers.decide(resource, cluster_state(), OPTIONS).children
    token = headers_for(resource, KEY)[HEADER]
    [container] = of_kind(made, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["args"][-2:] == ["--access-digest", token_digest(token)]
    assert knowing(made, token) == {"VirtualService"}


def test_without_a_key_there_is_no_token() -> None:
    made = notebooks.decide(notebook(), cluster_state(), Options()).children
    assert VARIABLE not in json.dumps(made)
    assert not read_route(of_kind(made, "Service")).access


def knowing(made: tuple[Json, ...], token: str) -> set[str]:
    """The kinds of children from which the token can be read."""
    return {child["kind"] for child in made if token in json.dumps(child)}
