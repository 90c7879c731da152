"""A server that lies cannot make its client write outside the folder it was told to."""

import io
import json
import os
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from clew import settings
from clew.api.delivery.http_client import Server
from clew.api.remote import downloads
from clew.api.remote.client import Client
from clew.api.remote.messages import RepeatCommand
from clew.api.remote.project import RemoteProject
from clew.documents.executions.repeats import Repeated
from clew.errors import ClewError, Damaged, NotAllowed
from clew.safe_path import escape_names
from clew.store import Store

Answer = bytes | Callable[[dict[str, Any]], Any]


@contextmanager
def answering(answers: Mapping[str, Answer]) -> Iterator[Server]:
    """A server that answers each route, by the end of its path, with what it is told to."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            answer = answers[self.path.partition("?")[0].removeprefix("/api/v1/")]
            body = answer if isinstance(answer, bytes) else answer(json.loads(asked or b"{}"))
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Server(f"http://127.0.0.1:{server.server_port}", "token")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def archive(*members: tuple[str, bytes, str]) -> Iterator[bytes]:
    """A tar of (name, type, link or text)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, kind, text in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o6777
            if kind == tarfile.REGTYPE:
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
            else:
                info.linkname = text
                tar.addfile(info)
    yield out.getvalue()


FILE, LINK, HARD, FOLDER = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE


@pytest.mark.parametrize(
    "members",
    [
        [("../victim", FILE, "evil")],
        [("{outside}/victim", FILE, "evil")],
        [("a", LINK, "{outside}"), ("a/victim", FILE, "evil")],
        [("a", LINK, ".."), ("a/victim", FILE, "evil")],
        [("a", HARD, "../victim"), ("a", FILE, "evil")],
        [("a", HARD, "{outside}/victim")],
        [("a", LINK, "{outside}/victim"), ("b", HARD, "a"), ("b", FILE, "evil")],
        [("a", LINK, "{outside}"), ("a", FOLDER, "")],
        [("a", tarfile.FIFOTYPE, "")],
        [("a", tarfile.CHRTYPE, "")],
        [("a\0b/../../victim", FILE, "evil")],
    ],
)
def test_an_archive_writes_nothing_outside(
    members: list[tuple[str, bytes, str]], tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    (outside / "victim").write_text("mine")
    told = [(n.format(outside=outside), k, t.format(outside=outside)) for n, k, t in members]
    try:
        downloads.unpack(archive(*told), outside / "kept")
    except ClewError:
        assert not (outside / "kept").exists()
    assert (outside / "victim").read_text() == "mine"
    assert (outside / "victim").stat().st_nlink == 1
    assert outside.stat().st_mode & 0o777 == 0o755
    assert {path.name for path in outside.iterdir()} <= {"victim", "kept"}


def test_an_archive_of_files_folders_and_links_is_extracted(tmp_path: Path) -> None:
    told = archive(
        (".", FOLDER, ""), ("./a", FOLDER, ""), ("./a/x", FILE, "text"), ("./l", LINK, "/etc")
    )
    downloads.unpack(told, tmp_path / "kept")
    assert (tmp_path / "kept/a/x").read_text() == "text"
    assert (tmp_path / "kept/a/x").stat().st_mode & 0o7022 == 0
    assert os.readlink(tmp_path / "kept/l") == "/etc"


@pytest.mark.parametrize("name", ["a/.clew/config.toml", ".git/config", "a/.clew-checkout"])
def test_an_archive_brings_no_project_and_no_repository(name: str, tmp_path: Path) -> None:
    with pytest.raises(Damaged):
        downloads.unpack(archive((name, FILE, "evil")), tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []
    downloads.unpack(
        archive((escape_names(name.encode()).decode(), FILE, "fine")), tmp_path / "kept"
    )
    downloads.unpack(archive((name, FILE, "an image's")), tmp_path / "image", escaped=False)


def test_a_server_prints_on_nothing_but_the_output(tmp_path: Path) -> None:
    """The number of a descriptor is its own choice: it could be that of our database."""
    with open(tmp_path / "mine", "wb") as mine:
        printed = {"printed": "ZXZpbA==", "to": mine.fileno()}
        with (
            answering({"commands/rerun": lambda _: printed}) as server,
            pytest.raises(Damaged, match="prints to a file descriptor"),
        ):
            downloads.run_command(
                Client(server, settings.load({})), RepeatCommand("e1"), Repeated, lambda _: None
            )
    assert (tmp_path / "mine").read_bytes() == b""


def test_malformed_warnings_of_an_export_are_an_error() -> None:
    for header in ("{", "%7B%7D", "%5B1%5D", quote('["\\ud800"]')):
        with pytest.raises(Damaged, match="malformed header"):
            downloads.parse_warnings(header)
    assert downloads.parse_warnings("") == []
    assert downloads.parse_warnings(quote('["no network"]')) == ["no network"]


def test_a_malformed_archive_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Damaged):
        downloads.unpack(iter([b"x" * 2000]), tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


def checkout(tmp_path: Path, *, name: str = "e1", **kept: Any) -> None:
    with Store(tmp_path / "store") as store:
        digest = store.put_bytes(b"evil").digest
        store.flush()
        told = {"digest": digest, "mode": 0o4755, "size": 4, "mtime": 1, "path": "/w/x"}
        file = {**told, "place": "x", "link": False, **kept}
        described = {"execution": "a" * 32, "id": name, "cwd": "/w", "missing": []}
        packs: dict[str, Answer] = {
            "project": lambda _: {"uid": "u", "root": "/"},
            "commands/ask/checkout": lambda _: {**described, "files": [file]},
            "content/records": store.pack_export().records([bytes.fromhex(digest[7:])]),
            "content/chunks": store.pack_export().chunks([], alone=[bytes.fromhex(digest[7:])]),
        }
    with answering(packs) as server:
        project = RemoteProject(server, settings.load({}))
        project.checkout("a" * 32)


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "inside"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_checkout_writes_the_files_of_the_server(inside: Path, tmp_path: Path) -> None:
    checkout(tmp_path)
    assert (inside / "e1/x").read_bytes() == b"evil"
    assert (inside / "e1/x").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "lie",
    [
        {"place": "../../victim"},
        {"place": "{outside}/victim"},
        {"place": ".clew/config.toml"},
        {"place": "../../victim", "path": "/w/../../victim"},
        {"place": "_outside/../../../victim", "path": "/../../../victim"},
        {"place": "x", "name": "../../outside"},
        {"place": "x", "name": "{outside}/new"},
    ],
)
def test_a_checkout_stays_in_its_folder(inside: Path, tmp_path: Path, lie: dict[str, str]) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "outside").mkdir()
    told = {key: value.format(outside=tmp_path / "outside") for key, value in lie.items()}
    with pytest.raises((Damaged, NotAllowed)):
        checkout(tmp_path, **told)
    assert (tmp_path / "victim").read_text() == "mine"
    assert list((tmp_path / "outside").iterdir()) == []
    assert list(inside.iterdir()) == []


def restore(tmp_path: Path, text: str, path: str, **more: Any) -> None:
    data = b"evil"
    with Store(tmp_path / "store") as store:
        digest = store.put_bytes(data).digest
    told = {"label": "e1:x", "digest": digest, "size": 4, "mode": 0o104755, "mtime": 1}
    version = {**told, "kind": "version", "locator": f"file://m{path}", "stored": True}
    execution = {"cwd": "/w", "command": [], "id": "e1", "uid": "a" * 32, "state": "done"}
    answers: dict[str, Answer] = {
        "commands/ask/version": lambda _: {**version, "execution": 1},
        "executions/e1": lambda _: execution,
        "content/missing": lambda _: {"chunks": [], "contents": []},
        "commands/content": json.dumps({"digest": digest}).encode() + b"\n" + data,
    }
    with answering(answers) as server:
        RemoteProject(server, settings.load({})).restore(text, **more)


def test_what_a_server_gives_is_restored_below_the_current_folder(
    inside: Path, tmp_path: Path
) -> None:
    (tmp_path / "victim").write_text("mine")
    for path in (f"{tmp_path}/victim", "/w/../../victim", "/w/../victim", "/w/a/.."):
        with suppress(ClewError):
            restore(tmp_path, "e1:x", path)
    assert (tmp_path / "victim").read_text() == "mine"
    restore(tmp_path, "e1:x", "/w/a/x")
    assert (inside / "a/x").read_bytes() == b"evil"
    assert (inside / "a/x").stat().st_mode & 0o7777 == 0o755
    (inside / "up").symlink_to(tmp_path)
    with pytest.raises(Damaged):
        restore(tmp_path, "e1:x", "/w/up/victim", overwrite=True)
    assert (tmp_path / "victim").read_text() == "mine"
    restore(tmp_path, "e1:x", "/w/.clew/config.toml")
    assert not (inside / ".clew").exists()


def test_a_server_overwrites_no_file_that_was_not_named(inside: Path, tmp_path: Path) -> None:
    (inside / "notes").write_text("mine")
    with pytest.raises(NotAllowed, match="has changed"):
        restore(tmp_path, "e1:x", f"{inside}/notes")
    assert (inside / "notes").read_text() == "mine"
    restore(tmp_path, "e1:notes", f"{inside}/notes")
    assert (inside / "notes").read_text() == "evil"


@pytest.mark.parametrize(
    "name", ["plain", ".aws/credentials", ".aws/./credentials", "l/credentials"]
)
def test_a_server_gets_no_credential_file_by_another_name(name: str, tmp_path: Path) -> None:
    """It knows digest and size from a record, and says where the file lies."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / "l").symlink_to(".aws")
    for each in ("plain", ".aws/credentials"):
        (tmp_path / each).write_text("of the user")
    with Store(tmp_path / "store") as store:
        digest = store.put_bytes(b"of the user").digest
    asked: list[dict[str, Any]] = []

    def missing(names: dict[str, Any]) -> dict[str, list[str]]:
        asked.append(names)
        return {"chunks": [], "contents": []}

    failed = {"code": "no-content", "message": "no", "hint": ""}
    sought = [[digest, f"{tmp_path}/{name}", len("of the user")]]
    answers: dict[str, Answer] = {
        "commands/ask/recreatable": lambda _: {"sought": sought, "error": failed},
        "content/missing": missing,
    }
    with answering(answers) as server, suppress(ClewError):
        RemoteProject(server, settings.load({})).recreate("e1:x")
    assert bool(asked) == (name == "plain")


@pytest.mark.parametrize("uid", ["../../victim/x", "{outside}/x"])
def test_an_execution_is_pushed_to_nothing_but_the_remote(tmp_path: Path, uid: str) -> None:
    """Its uid is a part of the name of a file there."""
    outside = tmp_path / "victim"
    outside.mkdir()
    uid = uid.format(outside=outside)
    listed = {"id": "e1", "uid": uid, "command": [], "state": "done"}
    answers: dict[str, Answer] = {
        "executions": lambda _: {"executions": [listed], "next": None, "total": 1},
        f"executions/{uid}/record": lambda _: {"source": None, "notes": [], "contents": []},
        f"executions/{uid}/events": b"\x90",
    }
    chosen = settings.load({"HOME": str(tmp_path)})
    with answering(answers) as server, pytest.raises(Damaged):
        RemoteProject(server, chosen).push(str(tmp_path / "remote"))
    assert list(outside.iterdir()) == []


def test_a_list_without_end_is_an_error() -> None:
    listed = {"id": "e1", "uid": "a" * 32, "command": [], "state": "done"}
    page = {"executions": [listed], "next": "e1", "total": 2}
    with (
        answering({"executions": lambda _: page}) as server,
        pytest.raises(Damaged, match="repeats its pages"),
    ):
        RemoteProject(server, settings.load({})).select()


def test_a_list_with_a_time_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    from clew.cli.main import main

    listed = {"id": "e1", "uid": "a" * 32, "command": [], "state": "done", "started": "\x1bnever"}
    page = {"executions": [listed], "next": None, "total": 1}
    with answering({"executions": lambda _: page}) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEW_SERVER", server.url)
        assert main(["list"]) == Damaged.exit_status
    assert "\x1b" not in "".join(capsys.readouterr())


def test_the_status_reads_ordinary_files_only(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("x")
    (tmp_path / "l").symlink_to("own")
    os.mkfifo(tmp_path / "pipe")
    kernel = "/proc/self/status"
    paths: list[dict[str, str]] = [
        *({"path": path} for path in (kernel, f"/{kernel}", f"{tmp_path}/../..{kernel}")),
        *({"path": path} for path in ("/a\0b", "/\ud800", "own", "")),
        *({"path": "x", "path_b64": text} for text in ("A", "\u1234")),
        *({"path": f"{tmp_path}/{name}"} for name in ("own", "l", "pipe")),
    ]
    known = {"execution": "e1", "digest": f"blake3:{'0' * 64}", "size": 0}
    size = {"bytes": 1, "reclaimable": 0, "cached": 0}
    served = {"project": "/", "uid": "u", "store": size, "other_files": 0}
    answers: dict[str, Answer] = {
        "status": lambda _: {**served, "files": [{**known, **path} for path in paths]},
        "executions": lambda _: {"executions": [], "next": None, "total": 0},
    }
    with answering(answers) as server:
        files = RemoteProject(server, settings.load({"HOME": str(tmp_path)})).status().files
    changed = {file.path.rpartition("/")[2] for file in files.modified}
    assert (changed, files.checked, files.missing) == ({"own", "l", "pipe"}, 3, ())
