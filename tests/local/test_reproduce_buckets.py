"""Fresh buckets on a real S3 server: restored objects, digests of what Pods left, clean-up."""

from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest
from blake3 import blake3
from obstore.store import S3Store
from tests.local.remotes import S3Server

from clew.api.reproduction.object_access import ObjectAccess, remove_buckets
from clew.documents.ids import Digest, Locator
from clew.errors import NotAllowed
from clew.replay.pods.stages import Expected, Place, Restored

CONTENT = b"one two"


class StoredContent:
    """The part of a record that is needed here."""

    def read(self, digest: Digest) -> Iterator[bytes]:
        assert digest == "blake3:0"
        yield from (CONTENT[:3], CONTENT[3:])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    server = S3Server(tmp_path / "root")
    (server.root / "old").mkdir()
    yield server
    server.stop()


def place(key: str) -> Place:
    return Place(Locator(f"s3://old/{key}"), "old", key.encode(), is_object=True)


def options(server: S3Server) -> dict[str, str]:
    return {name.lower(): value for name, value in server.environment.items()}


def test_objects_go_to_a_fresh_bucket_and_it_goes(server: S3Server) -> None:
    access = ObjectAccess({"old": "clew-reproduce-1-0"}, options(server), report_left=pytest.fail)
    with access:
        access.make_buckets()
        restored = Restored(place("a/b"), Digest("blake3:0"), None, len(CONTENT), 0o644, 0)
        access.restore(StoredContent(), [restored])  # type: ignore[arg-type]
        digest = Digest(f"blake3:{blake3(CONTENT).hexdigest()}")
        found = access.hash(
            [
                Expected(place("a/b"), digest),
                Expected(place("a/b"), Digest("sha256:0")),
                Expected(place("a/b"), Digest("etag:0")),
                Expected(place("none"), digest),
            ]
        )
        assert found[0] == digest
        assert [one and one.partition(":")[0] for one in found] == [
            "blake3",
            "sha256",
            "etag",
            None,
        ]
    assert sorted(path.name for path in server.root.iterdir()) == ["bucket", "old"]
    assert list((server.root / "old").iterdir()) == []


def test_content_that_is_in_a_bucket_itself(server: S3Server) -> None:
    """As an old version of an object is, and a record whose contents are at a remote."""
    store = S3Store(
        "old",
        config=options(server),  # type: ignore[arg-type]
        client_options={"allow_http": True},
    )
    obstore.put(store, "source", CONTENT)

    class RemoteContent:
        def read(self, digest: Digest) -> Iterator[bytes]:
            yield from map(bytes, obstore.get(store, "source").stream())

    access = ObjectAccess({"old": "clew-reproduce-1-0"}, options(server), report_left=pytest.fail)
    with access:
        access.make_buckets()
        restored = Restored(place("a"), Digest("blake3:0"), None, len(CONTENT), 0o644, 0)
        access.restore(RemoteContent(), [restored])  # type: ignore[arg-type]
        digest = f"blake3:{blake3(CONTENT).hexdigest()}"
        assert access.hash([Expected(place("a"), Digest(digest))]) == [digest]


def test_buckets_of_a_killed_command(server: S3Server) -> None:
    left = server.root / "clew-reproduce-2-0"
    (left / "a").mkdir(parents=True)
    (left / "a" / "b").write_bytes(b"x")
    names = ["clew-reproduce-2-0", "clew-reproduce-2-1"]
    for wrong in ({"aws_secret_access_key": "wrong"}, {"aws_endpoint_url": "http://127.0.0.1:1"}):
        found = remove_buckets(names, {**options(server), **wrong})
        assert [text.partition(" cannot be deleted: ")[0] for text in found] == [
            f"the bucket {name}" for name in names
        ]
        assert left.exists()
    assert remove_buckets(names, options(server)) == []
    assert not left.exists()


def test_a_bucket_that_stays_is_reported(server: S3Server) -> None:
    """Here because its keys are no longer valid when the command ends."""
    said: list[str] = []
    access = ObjectAccess({"old": "clew-reproduce-1-0"}, options(server), report_left=said.append)
    with access:
        access.make_buckets()
        server.stop()
    (text,) = said
    assert text.startswith("the bucket clew-reproduce-1-0 cannot be deleted: ")


def test_wrong_keys(server: S3Server) -> None:
    wrong = {**options(server), "aws_secret_access_key": "wrong"}
    with pytest.raises(NotAllowed, match="a bucket for old cannot be made"):
        ObjectAccess({"old": "clew-reproduce-1-0"}, wrong, report_left=pytest.fail).make_buckets()
