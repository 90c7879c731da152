"""Files and places that a task names and that are not its own, with a real S3 server."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3
from tests.local.s3_sidecar import KEY, SECRET, s3_server

from clew.documents.ids import TaskId, Uid
from clew.errors import ClewError
from clew.pipelines.pods import task_documents
from clew.pipelines.pods.artifact_store import ArtifactStore, StoredFile
from clew.pipelines.pods.reuse.pod_reuse import StoredArtifacts
from clew.pipelines.pods.reuse.result_copies import upload_outputs
from clew.pipelines.pods.task_documents import PodTaskResult
from clew.pipelines.spec.values import Artifact
from clew.prov.queries.pipelines.finished_tasks import FinishedTask

RUNS = "s3://lake/runs"
URL = f"{RUNS}/mine/1/folder/data"
"""Of a file in an output that is a directory."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ArtifactStore]:
    with s3_server(tmp_path) as port:
        (tmp_path / "objects" / "lake").mkdir()
        yield ArtifactStore(
            {
                "aws_access_key_id": KEY,
                "aws_secret_access_key": SECRET,
                "aws_endpoint_url": f"http://127.0.0.1:{port}",
                "aws_region": "us-east-1",
            }
        )


def artifact(url: str) -> Artifact:
    return {"name": "data", "uri": url, "type": {}, "metadata": {}}


def put_result(
    store: ArtifactStore, url: str, content: bytes, *, given: tuple[StoredFile, ...]
) -> None:
    """The result of a task that left one file at `url`."""
    place, _, name = url.rpartition("/")
    file = StoredFile(url, len(content), f"blake3:{blake3(content).hexdigest()}")
    result = PodTaskResult(output={}, texts={}, inputs=given, artifacts={name: (file,)})
    store.write(f"{place}/{task_documents.RESULT}", task_documents.encode(result))


def test_a_task_whose_input_was_not_what_it_was_said_to_be_is_not_reused(
    store: ArtifactStore,
) -> None:
    good, bad = b"good rows", b"bad rows"
    genuine = f"{RUNS}/other/1/data"
    put_result(store, genuine, good, given=())
    store.write(URL, bad)
    put_result(store, URL, good, given=())
    artifacts = StoredArtifacts(store)
    same = artifacts.identify(artifact(genuine)) == artifacts.identify(artifact(URL))
    assert same, "the file says so: both tasks have the same key"

    def trained(place: str, url: str, content: bytes) -> FinishedTask:
        given = StoredFile(url, len(content), f"blake3:{blake3(content).hexdigest()}")
        put_result(store, f"{place}/model", b"", given=(given,))
        return FinishedTask(TaskId("r1/train"), Uid("e"), place, (url,), outputs={"accuracy": 1})

    check = artifacts.check_outputs
    assert check(trained(f"{RUNS}/other/2", genuine, good)).why_not is None
    poisoned = check(trained(f"{RUNS}/mine/2", URL, bad))
    assert poisoned.why_not == f"{URL}, which it was given, was not what its maker says"


def test_a_file_of_the_user_that_has_the_name_of_a_result(store: ArtifactStore) -> None:
    store.write(URL, b"rows")
    store.write(f"{URL.rpartition('/')[0]}/{task_documents.RESULT}", b'{"accuracy": 1}')
    ((_, size, _),) = StoredArtifacts(store).identify(artifact(URL))
    assert size == 4


@pytest.mark.parametrize("by_link", [False, True])
def test_a_task_of_this_machine_cannot_have_other_files_uploaded(
    store: ArtifactStore, tmp_path: Path, by_link: bool
) -> None:
    secret, own = tmp_path / "secret", tmp_path / "train"
    secret.write_bytes(b"a key")
    own.mkdir()
    (own / "link").symlink_to(secret)
    (own / "model").write_bytes(b"a key")
    digest = f"blake3:{blake3(b'a key').hexdigest()}"

    def done(path: Path) -> FinishedTask:
        made = {"model": [{**artifact(str(path)), "digest": digest, "size": 5}]}
        return FinishedTask(TaskId("r1/train"), Uid("e"), str(own), (), artifacts=made)

    with pytest.raises(ClewError, match="its output model is not in its directory"):
        upload_outputs(store, done(own / "link" if by_link else secret), f"{RUNS}/2/train/reused")
    assert store.list(RUNS) == []
    upload_outputs(store, done(own / "model"), f"{RUNS}/2/train/reused")
    assert store.find(f"{RUNS}/2/train/reused/model") is not None
