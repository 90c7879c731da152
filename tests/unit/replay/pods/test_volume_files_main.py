"""The program that writes and hashes files on fresh volumes, also where a workload left links."""

import inspect
import json
import os
import subprocess
import sys
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from clew.replay.pods import volume_files_main


def encode(path: str) -> str:
    return b64encode(path.encode()).decode()


def run(root: Path, contents: bytes = b"", **request: Any) -> list[dict[str, Any]]:
    """As a helper runs it: its source, with a request on stdin."""
    asked = {"directories": [], "restore": [], "hash": [], **request}
    ran = subprocess.run(
        [sys.executable, "-c", inspect.getsource(volume_files_main), root],
        input=json.dumps(asked).encode() + b"\n" + contents,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def restored(path: str, size: int) -> dict[str, Any]:
    return {"path": encode(path), "size": size, "mode": 0o640, "mtime": 1_000_000_000}


def test_files_are_hashed_before_others_replace_them(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v/a").write_bytes(b"old")
    hashed = run(
        tmp_path,
        b"newmore",
        directories=[encode("v/made/below")],
        restore=[restored("v/a", 3), restored("v/deep/b", 4)],
        hash=[
            {"path": encode("v/a"), "algorithm": "blake3"},
            {"path": encode("v/a"), "algorithm": "sha256"},
            {"path": encode("v/none"), "algorithm": "blake3"},
        ],
    )
    assert hashed[0] == {"digest": f"blake3:{blake3(b'old').hexdigest()}", "size": 3}
    assert hashed[1]["digest"] == f"sha256:{sha256(b'old').hexdigest()}"
    assert hashed[2]["digest"] is None
    assert (tmp_path / "v/a").read_bytes() == b"new"
    assert (tmp_path / "v/deep/b").read_bytes() == b"more"
    assert (tmp_path / "v/deep/b").stat().st_mtime_ns == 1_000_000_000
    assert (tmp_path / "v/a").stat().st_mode & 0o777 == 0o666
    assert (tmp_path / "v/made/below").is_dir()
    assert sorted(path.name for path in (tmp_path / "v").iterdir()) == ["a", "deep", "made"]


def test_no_link_leads_out_of_the_volume(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"s")
    root = tmp_path / "volumes"
    (root / "v").mkdir(parents=True)
    (root / "v/dir").symlink_to(outside)
    (root / "v/file").symlink_to(outside / "secret")
    hashed = run(
        root,
        hash=[{"path": encode(path), "algorithm": "blake3"} for path in ("v/dir/secret", "v/file")],
    )
    assert [one["digest"] for one in hashed] == [None, None]
    with pytest.raises(AssertionError):
        run(root, b"x", restore=[restored("v/dir/new", 1)])
    run(root, b"x", restore=[restored("v/file", 1)])  # replaces the link itself
    assert (outside / "secret").read_bytes() == b"s"
    assert not (outside / "new").exists()
    assert (root / "v/file").read_bytes() == b"x"


@pytest.mark.parametrize("path", ["", "/", "../x", "v/../../x", "v/./x", "v/\0"])
def test_a_path_that_is_not_below_a_volume(path: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        volume_files_main.split_path(encode(path))


def test_pipes_and_devices_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    for name in ("a", "b.clew-part"):  # opening one to write would wait for a reader
        os.mkfifo(tmp_path / "v" / name)
    hashed = run(
        tmp_path,
        b"new",
        restore=[restored("v/b", 3)],
        hash=[{"path": encode("v/a"), "algorithm": "blake3"}],
    )
    assert hashed == [{"digest": None, "size": 0, "error": "it is not a file"}]
    assert (tmp_path / "v/b").read_bytes() == b"new"
