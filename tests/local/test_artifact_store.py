"""Files in a bucket of a real S3 server: streamed, with their digests."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3
from tests.local.s3_sidecar import KEY, SECRET, s3_server

from clew.errors import ClewError, NotAllowed, NotFound, UsageError
from clew.pipelines.pods.artifact_store import ArtifactStore


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("s3")
    with s3_server(folder, keep_alive=True) as port:
        (folder / "objects" / "lake").mkdir()
        yield {
            "aws_access_key_id": KEY,
            "aws_secret_access_key": SECRET,
            "aws_endpoint_url": f"http://127.0.0.1:{port}",
            "aws_region": "us-east-1",
        }


@pytest.fixture
def store(options: dict[str, str]) -> ArtifactStore:
    return ArtifactStore(options)


def test_a_file_of_several_parts(store: ArtifactStore, tmp_path: Path) -> None:
    content = os.urandom(20_000_000)
    (tmp_path / "file").write_bytes(content)
    with (tmp_path / "file").open("rb") as file:
        made = store.upload(file, "s3://lake/runs/file")
    assert (made.size, made.digest) == (len(content), f"blake3:{blake3(content).hexdigest()}")
    found = store.find("s3://lake/runs/file")
    assert found is not None
    assert (found.size, found.etag) == (made.size, made.etag)
    got = store.download("s3://lake/runs/file", tmp_path / "deep" / "copy")
    assert got == made
    assert (tmp_path / "deep" / "copy").read_bytes() == content


def test_an_empty_file(store: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with (tmp_path / "empty").open("rb") as file:
        made = store.upload(file, "s3://lake/empty")
    assert made.size == 0
    assert store.read("s3://lake/empty", most=1) == b""


def test_a_directory_is_what_lies_below_it(store: ArtifactStore) -> None:
    names = ("data", "data/a", "data/b c/é", "database")
    for name in names:
        store.write(f"s3://lake/dir/{name}" if name != "data" else "s3://lake/dir2", name.encode())
    found = [one.url for one in store.list("s3://lake/dir/data")]
    assert found == ["s3://lake/dir/data/a", "s3://lake/dir/data/b c/é"]


def test_what_does_not_exist(store: ArtifactStore, tmp_path: Path) -> None:
    assert store.read("s3://lake/nothing", most=9) is None
    assert store.find("s3://lake/nothing") is None
    assert store.list("s3://lake/nothing") == []
    with pytest.raises(NotFound, match="s3://lake/nothing does not exist"):
        store.download("s3://lake/nothing", tmp_path / "file")


def test_a_document_that_is_too_large(store: ArtifactStore) -> None:
    store.write("s3://lake/large", b"12345")
    with pytest.raises(ClewError, match="more than 4"):
        store.read("s3://lake/large", most=4)


def test_wrong_credentials(options: dict[str, str]) -> None:
    store = ArtifactStore({**options, "aws_secret_access_key": "wrong"})
    with pytest.raises(NotAllowed, match="the store refused s3://lake/x"):
        store.write("s3://lake/x", b"")


@pytest.mark.parametrize("url", ["s3://", "s3://UPPER/x", "lake/x", "s3://lake/../x", "http://a/b"])
def test_what_is_not_a_url_of_a_bucket(store: ArtifactStore, url: str) -> None:
    with pytest.raises(UsageError, match="is not the URL of a bucket"):
        store.find(url)
