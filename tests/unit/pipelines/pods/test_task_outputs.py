"""What a task leaves may lead anywhere; only files in the shared directory are stored."""

import os
import socket
from pathlib import Path

import pytest

from clew.pipelines.pods.task_outputs import TaskOutputs


@pytest.fixture
def share(tmp_path: Path) -> Path:
    secret = tmp_path / "secret"
    secret.write_text("of the helper")
    share = tmp_path / "s3"
    (share / "model" / "deep").mkdir(parents=True)
    (share / "model" / "deep" / "weights").write_text("w")
    (share / "model" / "alias").symlink_to("deep/weights")
    return share


def names(outputs: TaskOutputs, artifact: bytes) -> list[str]:
    return [file.suffix for file in outputs.list_files(artifact)]


def test_files_links_inside_and_single_files(share: Path) -> None:
    with TaskOutputs(str(share)) as outputs:
        assert names(outputs, b"/model") == ["/alias", "/deep/weights"]
        assert names(outputs, b"/model/deep/weights") == [""]
        assert names(outputs, b"/absent") == []
        opened = outputs.open(b"/model/alias")
        assert opened is not None
        with opened:
            assert opened.read() == b"w"
        assert outputs.left_out == []


@pytest.mark.parametrize(
    "target", ["../../secret", "../../../secret", "ABSOLUTE", "/proc/self/environ"]
)
def test_links_that_lead_out(share: Path, target: str) -> None:
    link = share / "model" / "link"
    link.symlink_to(target.replace("ABSOLUTE", str(share.parent / "secret")))
    with TaskOutputs(str(share)) as outputs:
        assert "/link" not in names(outputs, b"/model")
        assert outputs.left_out == ["/model/link"]
        assert outputs.open(b"/model/link") is None
        assert names(outputs, b"/model/link") == []


def test_what_is_no_file(share: Path) -> None:
    os.mkfifo(share / "model" / "fifo")
    (share / "model" / "loop").symlink_to(".")
    (share / "model" / os.fsdecode(b"\xff")).touch()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(share / "model" / "socket"))
        with TaskOutputs(str(share)) as outputs:
            assert names(outputs, b"/model") == ["/alias", "/deep/weights"]
            assert len(outputs.left_out) == 4
            assert outputs.open(b"/model/fifo") is None
