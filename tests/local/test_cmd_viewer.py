"""`clew viewer`: the real program, over HTTP; also behind the server."""

import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from tests import forkserver
from tests.driver import CLEW, Project
from tests.local.server import run_server
from tests.local.upstream import TargetTable

PREFIX = "/pvcviewer/me/data/"


@dataclass
class Viewer:
    folder: Path
    address: str
    process: subprocess.Popen[str]

    @property
    def port(self) -> int:
        found = urlsplit(self.address).port
        assert found is not None
        return found


@contextmanager
def viewing(folder: Path, *words: str) -> Iterator[Viewer]:
    """`clew viewer` of a folder, on a free port, until the end of the block."""
    command = [*CLEW, "viewer", str(folder), "--prefix", PREFIX, "--port", "0", *words]
    with forkserver.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Viewer(folder, process.stdout.readline().strip(), process)
            process.terminate()
            assert process.wait(60) in (0, -signal.SIGKILL)  # which a test may have sent
        finally:
            process.kill()


@pytest.fixture(scope="module")
def viewer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    with viewing(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def client(viewer: Viewer) -> Iterator[httpx2.Client]:
    for found in list(viewer.folder.iterdir()):
        subprocess.run(["rm", "-rf", found], check=True)
    with httpx2.Client(base_url=viewer.address, timeout=120) as opened:
        yield opened


def test_the_page_loads_without_external_resources(client: httpx2.Client) -> None:
    page = client.get("")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for name in re.findall(r'(?:src|href)="([\w.]+)"', page.text):
        found = client.get(name)
        assert found.status_code == 200
        assert "http" not in re.sub(r"//.*", "", found.text)
    bare = client.get(str(client.base_url).rstrip("/"), follow_redirects=False)
    assert (bare.status_code, bare.headers["location"]) == (308, PREFIX)
    origin = str(client.base_url).removesuffix(PREFIX)
    assert client.get(f"{origin}/").status_code == 404
    assert client.get(f"{origin}/healthz").text == "ok\n"


def test_files_come_and_go(viewer: Viewer, client: httpx2.Client) -> None:
    made = client.put("files/a.txt", content=b"hello")
    assert made.status_code == 201
    got = client.get("files/a.txt")
    assert (got.content, got.headers["etag"]) == (b"hello", made.headers["etag"])
    assert client.put("files/a.txt", content=b"again").status_code == 204
    assert client.post("files/sub", params={"make": "folder"}).status_code == 201
    assert client.post("files/sub", params={"make": "folder"}).status_code == 409
    assert client.post("files/a.txt?rename=sub/b%20c.txt").status_code == 204
    listed = client.get("files/sub").json()
    assert [(one["name"], one["href"], one["size"]) for one in listed["entries"]] == [
        ("b c.txt", "b%20c.txt", 5)
    ]
    assert client.get(f"files/sub/{listed['entries'][0]['href']}").content == b"again"
    assert client.delete("files/sub").status_code == 409
    assert client.delete("files/sub?everything=true").status_code == 204
    assert os.listdir(viewer.folder) == []
    assert client.delete("files/").status_code == 403
    for path, status in (("x", 404), ("../x", 404), ("%2e%2e/x", 400), ("a%00b", 400)):
        assert client.get(f"files/{path}").status_code == status, path


def test_names_need_not_be_text(viewer: Viewer, client: httpx2.Client) -> None:
    (viewer.folder / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"latin")
    (entry,) = client.get("files/").json()["entries"]
    assert entry["name"] == "caf\ufffd.txt"
    assert client.get(f"files/{entry['href']}").content == b"latin"
    assert client.post(f"files/{entry['href']}?rename=caf%E9%20two").status_code == 204
    assert os.listdir(os.fsencode(viewer.folder)) == [b"caf\xe9 two"]


def test_parts_can_be_asked_for(viewer: Viewer, client: httpx2.Client) -> None:
    (viewer.folder / "f").write_bytes(bytes(range(100)))
    part = client.get("files/f", headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, bytes(range(10, 20)))
    assert part.headers["content-range"] == "bytes 10-19/100"
    tag = part.headers["etag"]
    same = client.get("files/f", headers={"Range": "bytes=90-", "If-Range": tag})
    assert (same.status_code, same.content) == (206, bytes(range(90, 100)))
    other = client.get("files/f", headers={"Range": "bytes=90-", "If-Range": '"x"'})
    assert (other.status_code, len(other.content)) == (200, 100)
    past = client.get("files/f", headers={"Range": "bytes=100-"})
    assert (past.status_code, past.headers["content-range"]) == (416, "bytes */100")
    assert client.get("files/f", headers={"If-None-Match": tag}).status_code == 304
    head = client.head("files/f")
    assert (head.headers["content-length"], head.content) == ("100", b"")


def test_an_interrupted_upload_resumes(viewer: Viewer, client: httpx2.Client) -> None:
    data = os.urandom(3 << 20)
    key = {"Upload-Key": "mine"}
    head = (
        f"PUT {PREFIX}files/big HTTP/1.1\r\nHost: 127.0.0.1\r\nUpload-Key: mine\r\n"
        f"Content-Range: bytes 0-{len(data) - 1}/{len(data)}\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", viewer.port)) as connection:
        connection.sendall(head.encode() + data[: 2 << 20])
        while client.head("files/big", headers=key).headers["upload-offset"] == "0":
            pass
    wrong = {"Content-Range": f"bytes 0-{len(data) - 1}/{len(data)}", **key}
    while True:  # until it is known that nobody sends any more
        refused = client.put("files/big", content=data, headers=wrong)
        assert refused.status_code == 409
        if "upload-offset" in refused.headers:
            break
    offset = int(refused.headers["upload-offset"])
    assert client.head("files/big", headers=key).headers["upload-offset"] == str(offset)
    assert 0 < offset <= 2 << 20
    assert client.get("files/").json()["entries"] == []
    half = offset + (len(data) - offset) // 2
    for first, end, status in ((offset, half, 202), (half, len(data), 201)):
        headers = {"Content-Range": f"bytes {first}-{end - 1}/{len(data)}", **key}
        assert (
            client.put("files/big", content=data[first:end], headers=headers).status_code == status
        )
    assert (viewer.folder / "big").read_bytes() == data
    assert os.listdir(viewer.folder) == ["big"]


def test_an_upload_of_which_all_is_here_is_put_in_its_place_without_being_sent_again(
    tmp_path: Path,
) -> None:
    data = os.urandom(3 << 20)
    whole = {"Content-Range": f"bytes 0-{len(data) - 1}/{len(data)}", "Upload-Key": "mine"}
    rest = {"Content-Range": f"bytes */{len(data)}", "Upload-Key": "mine"}

    def overtaken() -> Iterator[bytes]:
        yield data[:-1]
        while not any(draft.stat().st_size for draft in tmp_path.iterdir()):
            pass  # until it was seen that nothing is in its place
        (tmp_path / "f").write_bytes(b"theirs")
        yield data[-1:]

    with viewing(tmp_path) as first, httpx2.Client(base_url=first.address) as client:
        early = client.put("files/f", headers=rest)
        assert (early.status_code, early.headers["upload-offset"]) == (409, "0")
        late = client.put("files/f", content=overtaken(), headers={**whole, "If-None-Match": "*"})
        assert (late.status_code, late.json()["code"]) == (412, "overtaken")
        first.process.kill()
        first.process.wait()
    with viewing(tmp_path) as second, httpx2.Client(base_url=second.address) as client:
        again = client.put("files/f", content=data, headers=whole)
        assert (again.status_code, again.headers["upload-offset"]) == (409, str(len(data)))
        assert rest["Content-Range"] in again.json()["detail"]
        kept = client.put("files/f", headers={**rest, "If-None-Match": "*"})
        assert kept.status_code == 412
        assert client.put("files/f", content=b"x", headers=rest).status_code == 400
        assert client.put("files/f", headers=rest).status_code == 204
    assert (tmp_path / "f").read_bytes() == data
    assert os.listdir(tmp_path) == ["f"]


def test_an_upload_in_one_piece_that_is_cut_leaves_nothing(
    viewer: Viewer, client: httpx2.Client
) -> None:
    head = f"PUT {PREFIX}files/cut HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", viewer.port)) as connection:
        connection.sendall(head.encode() + b"x" * (2 << 20))
        while not os.listdir(viewer.folder):
            pass
    while os.listdir(viewer.folder):
        pass
    assert client.get("files/cut").status_code == 404


def test_a_changed_file_is_not_overwritten(viewer: Viewer, client: httpx2.Client) -> None:
    tag = client.put("files/t", content=b"1").headers["etag"]
    assert client.put("files/t", content=b"2", headers={"If-Match": tag}).status_code == 204
    late = client.put("files/t", content=b"3", headers={"If-Match": tag})
    assert (late.status_code, late.json()["code"]) == (412, "overtaken")
    new = client.put("files/t", content=b"4", headers={"If-None-Match": "*"})
    assert new.status_code == 412
    assert (viewer.folder / "t").read_bytes() == b"2"


def test_nothing_of_a_volume_runs_as_a_page(viewer: Viewer, client: httpx2.Client) -> None:
    for name, kind, shown in (
        ("x.html", "text/plain; charset=utf-8", "inline"),
        ("x.svg", "image/svg+xml", "attachment"),
        ("x.png", "image/png", "inline"),
        ("x.bin", "application/octet-stream", "attachment"),
    ):
        (viewer.folder / name).write_text("<script>alert(1)</script>")
        got = client.get(f"files/{name}")
        assert got.headers["content-type"] == kind
        assert got.headers["content-disposition"].startswith(shown)
        assert got.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        assert got.headers["x-content-type-options"] == "nosniff"


def test_another_sites_page_changes_nothing(viewer: Viewer, client: httpx2.Client) -> None:
    (viewer.folder / "f").touch()
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        assert client.delete("files/f", headers=headers).status_code == 403
    assert client.get("files/f", headers={"Host": "evil.example"}).status_code == 421
    own = {"Origin": f"http://127.0.0.1:{viewer.port}"}
    assert client.delete("files/f", headers=own).status_code == 204


def test_behind_the_server_it_is_asked_with_the_token(tmp_path: Path) -> None:
    project = Project(tmp_path)
    table = TargetTable(tmp_path / "targets.toml")
    (tmp_path / "data").mkdir()
    with (
        viewing(tmp_path / "data") as viewer,
        run_server(project, "--targets", str(table.path)) as server,
        server.apps_client() as client,
        httpx2.Client(base_url=server.apps) as stranger,
    ):
        table.add("pvcviewer/me/data", viewer.port)
        assert "Files" in client.get(PREFIX).text
        data = os.urandom(5 << 20)
        assert client.put(f"{PREFIX}files/a", content=data).status_code == 201
        assert client.get(f"{PREFIX}files/a").content == data
        assert client.get(f"{PREFIX}files/a", headers={"Range": "bytes=-5"}).content == data[-5:]
        assert stranger.get(f"{PREFIX}files/a").status_code == 401
    assert (tmp_path / "data" / "a").read_bytes() == data


def test_bad_arguments_are_refused_at_start(tmp_path: Path) -> None:
    for words in ((tmp_path / "nowhere",), (tmp_path, "--prefix", "x"), (__file__,)):
        ran = forkserver.run([*CLEW, "viewer", *words], capture_output=True, timeout=60)
        assert ran.returncode in (2, 5), ran
        assert ran.stderr.startswith(b"error: ")


def test_with_a_digest_only_the_access_token_is_let_in(tmp_path: Path) -> None:
    """A client that reaches the Pod without the server does not know the token."""
    (tmp_path / "notes.txt").write_text("kept")
    with viewing(tmp_path, "--access-digest", sha256(b"the token").hexdigest()) as running:
        for headers in ({}, {"X-Clew-Access": ""}, {"X-Clew-Access": sha256(b"x").hexdigest()}):
            with httpx2.Client(base_url=running.address, headers=headers) as stranger:
                assert stranger.get("files/notes.txt").status_code == 403
                assert stranger.put("files/notes.txt", content=b"other").status_code == 403
                assert stranger.get("").status_code == 403
        assert (tmp_path / "notes.txt").read_text() == "kept"
        known = {"X-Clew-Access": "the token"}
        with httpx2.Client(base_url=running.address, headers=known) as server:
            assert server.get("files/notes.txt").text == "kept"


def test_a_malformed_digest_is_refused(tmp_path: Path) -> None:
    ran = forkserver.run(
        [*CLEW, "viewer", str(tmp_path), "--access-digest", "secret"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2
    assert "64 hexadecimal digits" in ran.stderr
