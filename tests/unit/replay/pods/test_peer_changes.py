"""What changed behind a Service since it was asked."""

import pytest

from clew.documents.ids import Digest, Uid
from clew.prov.cluster.ancestry_types import PeerPod
from clew.replay.pods.peer_changes import explain_changes


def answering(image: str, settings: str | None = None, container: str = "main") -> PeerPod:
    maps = {} if settings is None else {"settings": Digest(f"blake3:{settings}")}
    return PeerPod(
        uid=Uid(image), namespace="ml", name="p", images={container: image}, config_maps=maps
    )


@pytest.mark.parametrize(
    ("then", "now", "why"),
    [
        ([answering("sha256:a", "1")], [answering("sha256:a", "1")], ""),
        ([answering("sha256:a")], [answering("sha256:a"), answering("sha256:a")], ""),
        ([answering("sha256:a")], [], "no Pod answers for it any more"),
        ([], [answering("sha256:a")], "which Pods answered then is not recorded"),
        (
            [answering("sha256:a", "1")],
            [answering("sha256:b", "2")],
            (
                "the image of main was sha256:a, and is sha256:b,"
                " the ConfigMap settings was blake3:1, and is blake3:2"
            ),
        ),
        (
            [answering("sha256:a")],
            [answering("sha256:a"), answering("sha256:b")],
            "the image of main was sha256:a, and is sha256:a or sha256:b",
        ),
        (
            [answering("sha256:a", "1")],
            [answering("sha256:a", container="other")],
            "the image of main is gone, the image of other is new, the ConfigMap settings is gone",
        ),
    ],
)
def test_what_changed_is_named(then: list[PeerPod], now: list[PeerPod], why: str) -> None:
    assert explain_changes(then, now) == why
