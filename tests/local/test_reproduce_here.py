"""`clew reproduce --here`: recorded Pods in containers of this machine."""

import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.local.programs.runtimes import BRIDGE, Daemon, docker
from tests.local.remotes import S3Server
from tests.pod_records import HandwrittenRecord
from tests.wait import wait_until

from clew.api.reproduction.local_run import reproduce_here
from clew.api.reproduction.plan_report import plan_reproduction
from clew.api.reproduction.preparation import RunOptions
from clew.documents.lineage.reproduction import Reproduction
from clew.pipelines.tasks.containers.runtime import find_runtime

IMAGE = "example.org/busy:1"
RAW = b"one\ntwo\n"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with docker(network=True) as daemon:
        daemon.image(IMAGE, "here")
        daemon.runs(IMAGE)
        yield daemon


@pytest.fixture
def record(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> Iterator[HandwrittenRecord]:
    for name, value in daemon.variables.items():
        monkeypatch.setenv(name, value)
    find_runtime.cache_clear()
    image = daemon("image", "inspect", "--format", "{{.Id}}", IMAGE).strip()
    yield HandwrittenRecord(IMAGE, image)
    find_runtime.cache_clear()


def reproduce(
    record: HandwrittenRecord,
    *,
    network: bool = False,
    s3: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
    **given: str,
) -> Reproduction:
    planned = plan_reproduction(record, "target")
    options = RunOptions(given, network=network)
    return reproduce_here(record, planned, options, s3=s3 or {}, say=say)


def test_pods_run_in_order_on_one_directory(record: HandwrittenRecord) -> None:
    secret = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "x", "key": "y"}}}
    record.pod(
        "count",
        "wc -l < /data/in/raw | tr -d ' ' > /data/out/count",
        reads={"in/raw": RAW},
        writes={"out/count": b"2\n"},
    )
    record.pod(
        "say",
        'echo "$KEY $MARK $(cat /data/out/count)" > /data/said',
        reads={"out/count": b"2\n"},
        writes={"said": b"k v 2\n"},
        env=[secret, {"name": "MARK", "value": "v"}],
    )
    done = reproduce(record, KEY="k")
    assert done.verdict == "identical", done
    assert done.compared == 2


def test_a_variable_of_the_record_does_not_reach_the_client(record: HandwrittenRecord) -> None:
    """With it, the client of the runtime would ask the daemon of an attacker, or load his code."""
    hostile = [{"name": name, "value": "/none"} for name in ("DOCKER_HOST", "LD_PRELOAD")]
    script = 'echo "$DOCKER_HOST $LD_PRELOAD" > /data/seen'
    record.pod("evil", script, writes={"seen": b"/none /none\n"}, env=hostile)
    done = reproduce(record)
    assert done.verdict == "identical", done


def test_the_network_is_not_that_of_this_machine(record: HandwrittenRecord) -> None:
    """A record may come from another party: what listens on loopback addresses is not for it."""
    with _serve("127.0.0.1") as loopback, _serve(BRIDGE) as reached:
        record.pod(
            "ask",
            f"""
            busybox wget -q -O /data/reached http://{BRIDGE}:{reached}/
            ! busybox wget -q -O /data/loopback http://127.0.0.1:{loopback}/
            """,
            writes={"reached": b"here"},
        )
        done = reproduce(record, network=True)
    assert done.verdict == "identical", done


@contextmanager
def _serve(address: str) -> Iterator[int]:
    """A server that says `here`, on the port that is returned."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"here")

    with ThreadingHTTPServer((address, 0), Answer) as server:
        Thread(target=server.serve_forever).start()
        yield server.server_address[1]
        server.shutdown()


def test_what_a_killed_command_left_goes_with_the_next_one(
    record: HandwrittenRecord, daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its container, its directory with restored inputs, and its fresh bucket."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    record.pod("slow", "sleep 600", reads={"in": RAW}, writes={"a": b""})
    context = multiprocessing.get_context("fork")
    process = context.Process(target=reproduce, args=(record,))
    process.start()
    try:
        wait_until("a container", lambda: daemon("ps", "--format", "{{.Names}}"))
    finally:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    (left,) = tmp_path.glob("clew-reproduce-*")
    assert [path.read_bytes() for path in left.rglob("in")] == [RAW]
    server = S3Server(tmp_path / "s3")
    try:
        bucket = server.root / f"clew-reproduce-{left.name[-8:]}-0"
        bucket.mkdir()
        (left / "buckets").write_text(bucket.name)
        options = {name.lower(): value for name, value in server.environment.items()}
        after = HandwrittenRecord("example.org/gone:1", "sha256:" + "0" * 64)
        after.pod("gone", "true", writes={"a": b""})
        said: list[str] = []
        reproduce(after, s3={**options, "aws_secret_access_key": "wrong"}, say=said.append)
        assert [text.partition(":")[0] for text in said] == [
            f"the bucket {bucket.name} cannot be deleted"
        ]
        assert [path.name for path in left.iterdir()] == ["buckets"]
        reproduce(after, s3=options)
        assert not bucket.exists()
    finally:
        server.stop()
    assert not left.exists()
    assert daemon("ps", "--all", "--format", "{{.Names}}") == ""


def test_what_cannot_run_here_is_named(record: HandwrittenRecord) -> None:
    beside = {"name": "wait", "image": IMAGE, "restartPolicy": "Always"}
    record.pod("two", "true", writes={"a": b""}, initContainers=[beside])
    done = reproduce(record)
    assert done.verdict is None
    assert any("runs beside the others" in one.why for one in done.not_reproduced)
    gone = HandwrittenRecord("example.org/gone:1", "sha256:" + "0" * 64)
    gone.pod("gone", "true", writes={"a": b""})
    done = reproduce(gone)
    assert any("is not on this machine" in one.why for one in done.not_reproduced)


def test_a_pod_that_fails_says_why_without_the_secret(record: HandwrittenRecord) -> None:
    secret = {"name": "KEY", "value": "***"}
    record.pod("bad", 'echo "lost $KEY"; false', writes={"a": b""}, env=[secret])
    done = reproduce(record, KEY="canary")
    assert done.verdict == "different"
    assert "lost ***" in str(done.not_reproduced)
    assert "canary" not in str(done)
