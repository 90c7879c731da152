"""Whether an earlier task in a Pod may be reused: its image, and what it left."""

import pytest

from clew.pipelines.pods.artifact_store import StoredFile, StoredObject
from clew.pipelines.pods.reuse.pod_reuse import (
    check_image,
    compare_outputs,
    find_digest,
    full_name,
    read_digests,
)
from clew.pipelines.pods.task_documents import PodTaskResult

A, B = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"


def node(*images: list[str]) -> dict[str, object]:
    return {"status": {"images": [{"names": names} for names in images]}}


@pytest.mark.parametrize(
    ("short", "full"),
    [
        ("python", "docker.io/library/python:latest"),
        ("python:3.12", "docker.io/library/python:3.12"),
        ("team/train:1", "docker.io/team/train:1"),
        ("localhost/train", "localhost/train:latest"),
        ("r.example.org:5000/train:1", "r.example.org:5000/train:1"),
    ],
)
def test_the_full_name_of_an_image(short: str, full: str) -> None:
    assert full_name(short) == full


def test_the_digests_that_nodes_report() -> None:
    name = "docker.io/library/python"
    same = [f"{name}@{A}", f"{name}:3"]
    assert read_digests([node(same), node(same)]) == {f"{name}:3": A}
    other = [f"{name}@{B}", f"{name}:3"]
    assert read_digests([node(same), node(other)]) == {}, "the nodes have different images"
    assert read_digests([node([f"{name}:3"]), node(same)]) == {}, "one of them is not known"
    assert read_digests([{}, node()]) == {}


def test_the_image_that_a_task_would_run_in() -> None:
    def never() -> dict[str, str]:
        raise AssertionError("a pinned image is known")

    assert find_digest(f"python@{A}", never) == A
    assert find_digest("python:3", lambda: {"docker.io/library/python:3": B}) == B
    assert check_image(f"python@{A}", (A,), never).why_not is None
    assert check_image(f"python@{A}", (B,), never).why_not == "its image changed"
    assert "not known" in (check_image("python:3", (A,), dict).why_not or "")


def test_outputs_must_be_what_was_left() -> None:
    url = "s3://lake/1/train/1/model"
    file = StoredFile(url, 3, "blake3:aa", "e1")
    left = PodTaskResult(output={}, texts={}, inputs=(), artifacts={"model": (file,)})
    assert compare_outputs(left, [StoredObject(url, 3, "e1")]).why_not is None
    assert compare_outputs(left, []).why_not == f"{url}, which it made, is gone"
    for changed in (StoredObject(url, 4, "e1"), StoredObject(url, 3, "e2")):
        assert compare_outputs(left, [changed]).why_not == f"{url}, which it made, changed"
