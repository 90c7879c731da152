"""Requests of kube-scheduler, in any case, and what is none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import UsageError
from clew.kube.scheduler.wire_format import (
    encode_filter_result,
    encode_scores,
    parse_arguments,
)

POD = {
    "metadata": {
        "name": "p",
        "namespace": "n",
        "uid": "u",
        "labels": {"a": "b"},
        "ownerReferences": [{"uid": "x"}, {"uid": "set", "controller": True, "kind": "ReplicaSet"}],
        "creationTimestamp": None,
    },
    "spec": {"containers": [{"name": "c"}]},
    "status": {},
}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.parametrize("change", [str, str.lower, str.upper, str.swapcase])
def test_keys_are_read_in_any_case(change: Any) -> None:
    request = {"Pod": POD, "Nodes": None, "NodeNames": ["n1", "n2"]}
    found = parse_arguments(json.dumps({change(k): v for k, v in request.items()}).encode())
    assert found.nodes == ["n1", "n2"]
    assert found.pod.metadata.labels == {"a": "b"}
    assert found.pod.owner == "set"


def test_whole_nodes_are_refused_with_what_to_change() -> None:
    request = {"Pod": POD, "Nodes": {"items": []}, "NodeNames": None}
    with pytest.raises(UsageError) as raised:
        parse_arguments(json.dumps(request).encode())
    assert "nodeCacheCapable" in raised.value.hint


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_what_is_no_request_is_refused(body: bytes) -> None:
    with pytest.raises(UsageError):
        parse_arguments(body)


@given(json_values, json_values)
def test_a_request_is_read_or_refused(pod: Any, names: Any) -> None:
    try:
        found = parse_arguments(json.dumps({"Pod": pod, "NodeNames": names}).encode())
    except UsageError:
        return
    assert all(isinstance(name, str) for name in found.nodes)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(UsageError):
        parse_arguments(b'{"Pod":' + b"[" * 100_000 + b"]" * 100_000 + b',"NodeNames":[]}')


def test_answers_are_written_as_go_does() -> None:
    assert json.loads(encode_filter_result(["a"], ["b"], "why")) == {
        "NodeNames": ["a"],
        "FailedAndUnresolvableNodes": {"b": "why"},
        "Nodes": None,
        "FailedNodes": {},
        "Error": "",
    }
    assert json.loads(encode_scores({"a": 10})) == [{"Host": "a", "Score": 10}]
