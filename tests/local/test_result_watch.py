"""Results are noticed when they are stored, in a real S3 server."""

import queue
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local.s3_sidecar import KEY, SECRET, s3_server
from tests.wait import TIMEOUT

from clew.pipelines.pods.artifact_store import ArtifactStore
from clew.pipelines.pods.result_watch import ResultWatch


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ArtifactStore]:
    with s3_server(tmp_path, keep_alive=True) as port:
        (tmp_path / "objects" / "lake").mkdir()
        yield ArtifactStore(
            {
                "aws_access_key_id": KEY,
                "aws_secret_access_key": SECRET,
                "aws_endpoint_url": f"http://127.0.0.1:{port}",
                "aws_region": "us-east-1",
            }
        )


def test_each_result_is_noticed_once(store: ArtifactStore) -> None:
    found: queue.Queue[str] = queue.Queue()
    watch = ResultWatch(store)
    urls = [f"s3://lake/{name}/result.json" for name in "abc"]
    for url in urls:
        watch.await_result(url, lambda url=url: found.put(url))
    watch.await_result(urls[1], lambda: found.put("again"))
    watch.forget(urls[0])
    store.write(urls[0], b"{}")
    store.write(urls[1], b"{}")
    assert found.get(timeout=TIMEOUT) == "again"
    store.write(urls[2], b"{}")
    assert found.get(timeout=TIMEOUT) == urls[2]
    watch.close()
    assert found.empty()
