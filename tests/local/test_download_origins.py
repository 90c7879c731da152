"""A downloaded file's origin is found by itself: real programs, a real server on loopback."""

import functools
import http.server
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import clew


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[clew.Project]:
    monkeypatch.chdir(tmp_path)
    with clew.init(tmp_path) as opened:
        yield opened


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """(port, certificate) of a server of one file over TLS, and over plain HTTP one port up."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "data.csv").write_text("a,b\n1,2\n")
    certificate = folder.parent / "certificate.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-batch"]
    words += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    words += ["-keyout", str(certificate), "-out", f"{certificate}.crt"]
    subprocess.run(["openssl", *words], check=True, capture_output=True)
    certificate.write_text(certificate.read_text() + Path(f"{certificate}.crt").read_text())
    handler = functools.partial(_Quiet, directory=str(folder))
    plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    secure = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    for one in (plain, secure):
        threading.Thread(target=one.serve_forever, daemon=True).start()
    _Quiet.plain = plain.server_address[1]
    yield secure.server_address[1], certificate
    for one in (plain, secure):
        one.shutdown()
        one.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    plain = 0

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's word)
        pass


@pytest.mark.parametrize(
    "words", [["curl", "-s", "-o", "got.csv"], ["wget", "-q", "-O", "got.csv"]]
)
def test_curl_and_wget_say_it_in_their_arguments(
    project: clew.Project, server: tuple[int, Path], words: list[str]
) -> None:
    assert shutil.which(words[0])
    url = f"http://localhost:{_Quiet.plain}/data.csv"
    assert project.exec([*words, f"{url}?token=hidden-word"]).status == 0
    lineage = project.lineage("got.csv")
    (got,) = (node for node in lineage.nodes if node.label.endswith("got.csv"))
    assert got.source == f"{url}?token=***"
    assert "hidden-word" not in str(lineage.nodes)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_python_program_is_seen_asking(
    project: clew.Project, server: tuple[int, Path], scheme: str
) -> None:
    port, certificate = server
    url = f"{scheme}://localhost:{port if scheme == 'https' else _Quiet.plain}/data.csv"
    script = (
        "import pathlib, requests, sys; url, verify = sys.argv[1:]\n"
        "pathlib.Path('got.csv').write_bytes(requests.get(url, verify=verify).content)"
    )
    command = [sys.executable, "-c", script, url, f"{certificate}.crt"]
    assert project.exec(command).status == 0
    assert Path("got.csv").read_text() == "a,b\n1,2\n"
    assert url in {node.label for node in project.lineage("got.csv").nodes}


class _Hub(http.server.BaseHTTPRequestHandler):
    """As much of the Hugging Face hub as its own client asks for one file."""

    commit = "89abcdef0123456789abcdef0123456789abcdef"
    content = b"weights\n"

    def do_GET(self) -> None:
        there = self.path.endswith("/resolve/main/model.bin")
        self.send_response(200 if there else 404)
        self.send_header("X-Repo-Commit", self.commit)
        self.send_header("ETag", '"f00d"')
        self.send_header("Content-Length", str(len(self.content) if there else 0))
        self.end_headers()
        if there and self.command == "GET":
            self.wfile.write(self.content)

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base's word)
        pass


def test_a_file_that_the_hub_s_own_client_fetched(
    project: clew.Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{hub.server_address[1]}"
    monkeypatch.setenv("HF_ENDPOINT", address)
    monkeypatch.setenv("HF_HUB_CACHE", str(project.root / "hub"))
    script = (
        "from huggingface_hub import hf_hub_download; import shutil\n"
        "shutil.copy(hf_hub_download('org/tiny', 'model.bin'), 'model.bin')"
    )
    try:
        assert project.exec([sys.executable, "-c", script]).status == 0
    finally:
        hub.shutdown()
        hub.server_close()
    asked = f"{address}/org/tiny/resolve/main/model.bin"
    assert asked in {node.label for node in project.lineage("model.bin").nodes}
    (blob,) = (project.root / "hub").glob("models--org--tiny/blobs/*")
    assert project.exec(["cp", str(blob), "copy.bin"]).status == 0
    sources = {node.source for node in project.lineage("copy.bin").nodes}
    assert f"{address}/org/tiny/resolve/{_Hub.commit}/model.bin" in sources


def test_a_file_of_a_hub_cache_is_known_by_its_place(project: clew.Project) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    cache = project.root / "hub" / "models--org--tiny"
    (cache / "blobs").mkdir(parents=True)
    (cache / "blobs" / "f00d").write_text("weights")
    link = cache / "snapshots" / commit / "model.bin"
    link.parent.mkdir(parents=True)
    link.symlink_to("../../blobs/f00d")
    assert project.exec(["cp", str(link), "copy.bin"]).status == 0
    sources = {node.source for node in project.lineage("copy.bin").nodes}
    assert f"https://huggingface.co/org/tiny/resolve/{commit}/model.bin" in sources
