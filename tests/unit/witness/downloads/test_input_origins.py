"""Where files came from that an execution only read."""

import os
import subprocess
from pathlib import Path

import pytest

from clew.witness.downloads.input_origins import find_download_urls, find_git_blobs
from clew.witness.syscalls.trace_format import FileStat
from clew.witness.syscalls.version_tracker import file_stat_of


def read(*paths: Path) -> dict[bytes, FileStat]:
    return {os.fsencode(path): file_stat_of(path.stat()) for path in paths}


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(
    ("value", "url"),
    [
        (b"https://example.org/a.csv?b=%20c", "https://example.org/a.csv?b=%20c"),
        (b"blob:https://example.org/1", None),
        (b"https://example.org/a\nb", None),
        (b"https://example.org/" + b"a" * 4000, None),
        (b"\xff", None),
    ],
)
def test_the_url_of_a_browser_download(tmp_path: Path, value: bytes, url: str | None) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    os.setxattr(file, "user.xdg.origin.url", value)
    files = read(file)
    assert find_download_urls(files) == ({os.fsencode(file): url} if url else {})
    file.write_text("changed")
    assert find_download_urls(files) == {}


def test_blob_and_commit_of_a_checkout(tmp_path: Path) -> None:
    names = ["data/a;b 1.csv", "dirty", "changed", "empty"]
    for name in names:
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("" if name == "empty" else f"content of {name}\n")
    top = tmp_path / "repository"
    git(tmp_path, "init", "-q", str(top))
    assert find_git_blobs(read(top / "dirty"), os.environ) == {}  # no commit yet
    git(top, "add", ".")
    git(top, "commit", "-qm", "first")
    (top / "dirty").write_text("content of DIRTY\n")
    (top / "untracked").write_text("x")
    (tmp_path / "outside").write_text("x")
    files = read(*(top / name for name in [*names, "untracked"]), tmp_path / "outside")
    (top / "changed").write_text("content of CHANGED\n")  # after it was read
    blob, commit = git(top, "rev-parse", f"HEAD:{names[0]}", "HEAD").split()
    assert find_git_blobs(files, os.environ) == {
        os.fsencode(top / names[0]): (
            f"swh:1:cnt:{blob};anchor=swh:1:rev:{commit};path=/data/a%3Bb%201.csv"
        )
    }
