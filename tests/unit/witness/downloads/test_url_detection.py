"""The real curl and wget download from a server in this process, which replies with the path."""

import http.server
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.witness.downloads.url_detection import hugging_face_url, pair_downloads


class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = self.path.encode()
        self.send_response(200)
        if "named" in self.path:
            self.send_header("Content-Disposition", 'attachment; filename="chosen.bin"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def fetch(command: list[str], directory: Path, *, stdout: str | None = None) -> dict[str, str]:
    """Run the tool; the files it wrote, with the detected URLs."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    before = set(directory.rglob("*"))
    with open(directory / stdout if stdout else os.devnull, "wb") as file:
        subprocess.run(
            command,
            cwd=directory,
            stdout=file,
            stderr=subprocess.DEVNULL,
            check=True,
            env={"PATH": os.environ["PATH"], "HOME": str(directory), "no_proxy": "*"},
        )
    written = [p for p in set(directory.rglob("*")) - before if p.is_file()]
    pairs = pair_downloads(command, [os.fsencode(p) for p in written], cwd=os.fsencode(directory))
    return {os.fsdecode(path): url for path, url in pairs}


@pytest.mark.parametrize(
    "words",
    [
        ["curl", "-o", "x", "{}/a"],
        ["curl", "-sSLo", "x", "{}/a"],
        ["curl", "--output", "sub/x", "--create-dirs", "{}/a"],
        ["curl", "-O", "{}/a%20b.csv?y=1"],
        ["curl", "-O", "-O", "{}/one", "{}/two"],
        ["curl", "{}/one", "-o", "1", "{}/two", "-o", "2"],
        ["curl", "--remote-name-all", "--output-dir", "sub", "--create-dirs", "{}/a", "{}/b"],
        ["curl", "-OJ", "{}/named"],
        ["curl", "-D", "headers", "-c", "cookies", "-e", "{}/from", "{}/a", "-o", "x"],
        ["curl", "-so", "a", "{}/a", "--next", "-o", "b", "{}/b"],
        ["curl", "-H", "X: {}/no", "--url", "{}/a", "-ox"],
        ["wget", "{}/a"],
        ["wget", "-q", "{}/"],
        ["wget", "-nv", "{}/a%20b?y=1", "{}/c"],
        ["wget", "-O", "x", "{}/a"],
        ["wget", "-qOx", "{}/a"],
        ["wget", "--output-document=x", "--referer={}/no", "{}/a"],
        ["wget", "-P", "sub/below", "{}/a", "{}/b"],
        ["wget", "--content-disposition", "{}/named"],
        ["wget", "-o", "log", "--save-cookies", "cookies", "{}/a"],
        ["wget", "-x", "{}/deep/er/a"],
    ],
    ids=" ".join,
)
def test_every_file_fetched_is_paired_with_its_url(
    words: list[str], site: str, tmp_path: Path
) -> None:
    pairs = fetch([word.replace("{}", site) for word in words], tmp_path)
    contents = {str(p): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    # the server replies with the path, so the content of a file is its URL
    expected = {p: site + c.decode() for p, c in contents.items() if c.startswith(b"/")}
    assert expected
    assert pairs == expected


def test_a_redirected_output_is_paired(site: str, tmp_path: Path) -> None:
    assert fetch(["curl", "-s", f"{site}/a"], tmp_path, stdout="kept") == {
        str(tmp_path / "kept"): f"{site}/a"
    }
    assert fetch(["wget", "-qO-", f"{site}/b"], tmp_path, stdout="other") == {
        str(tmp_path / "other"): f"{site}/b"
    }


def test_wget_numbers_a_file_whose_name_exists(site: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    assert fetch(["wget", f"{site}/a"], tmp_path) == {str(tmp_path / "a.1"): f"{site}/a"}


@pytest.mark.parametrize(
    "words",
    [
        ["curl", "http://h/a", "http://h/b"],
        ["curl", "-o", "#1", "http://h/{a,b}"],
        ["curl", "-K", "list", "http://h/a"],
        ["wget", "-i", "list"],
        ["wget", "-O", "all", "http://h/a", "http://h/b"],
        ["cp", "http://h/a", "all"],
        ["curl"],
        [],
    ],
)
def test_an_ambiguous_command_gives_no_pairs(words: list[str]) -> None:
    assert pair_downloads(words, [b"/w/all"], cwd=b"/w") == []


def test_a_url_may_lack_its_scheme() -> None:
    pairs = pair_downloads(["/usr/bin/curl", "-o", "x", "h.org/a"], [b"/w/x"], cwd=b"/w")
    assert pairs == [(b"/w/x", "http://h.org/a")]


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("directory", "url"),
    [
        ("models--org--name", "https://huggingface.co/org/name"),
        ("models--gpt2", "https://huggingface.co/gpt2"),
        ("datasets--org--na-me", "https://huggingface.co/datasets/org/na-me"),
        ("spaces--org--app", "https://huggingface.co/spaces/org/app"),
    ],
)
def test_files_of_the_hugging_face_cache(directory: str, url: str) -> None:
    hub = f"/home/me/.cache/huggingface/hub/{directory}"
    link = f"{hub}/snapshots/{COMMIT}/sub/a b.json".encode()
    blob = f"{hub}/blobs/cafe".encode()
    assert hugging_face_url(link) == f"{url}/resolve/{COMMIT}/sub/a%20b.json"
    assert hugging_face_url(blob, {link: b"../../../blobs/cafe"}) == hugging_face_url(link)
    other = url.replace("huggingface.co", "hub.example.org")
    assert hugging_face_url(link, hub="https://hub.example.org/") == (
        f"{other}/resolve/{COMMIT}/sub/a%20b.json"
    )
    assert hugging_face_url(blob, {link: b"../../../blobs/beef"}) is None
    assert hugging_face_url(blob) is None
    assert hugging_face_url(f"{hub}/refs/main".encode()) is None


def test_other_paths_are_not_in_the_cache() -> None:
    assert hugging_face_url(b"/data/models/x/snapshots/1/y") is None
    assert hugging_face_url(f"/data/models--x/snapshots/{COMMIT[:10]}/y".encode()) is None
