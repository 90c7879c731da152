"""A package index of our own on this machine, with one tiny package that can be made to wait."""

import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NAME = "clewtest"


def wheel(folder: Path, version: str = "1.0") -> Path:
    """A wheel whose one module knows its version."""
    path = folder / f"{NAME}-{version}-py3-none-any.whl"
    about = f"{NAME}-{version}.dist-info"
    files = {
        f"{NAME}.py": f"VERSION = {version!r}\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as file:
        for name, text in files.items():
            file.writestr(name, text)
    return path


class Index:
    """While `closed`, whoever asks waits; `asked` says that somebody does."""

    def __init__(self, folder: Path) -> None:
        self.opened, self.asked = threading.Event(), threading.Event()
        self.opened.set()
        found = wheel(folder)
        listing = f'<a href="/{found.name}">{found.name}</a>'.encode()
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.asked.set()
                index.opened.wait()
                whole = self.path.endswith(".whl")
                self.send_response(200)
                self.send_header("Content-Type", "application/zip" if whole else "text/html")
                self.end_headers()
                self.wfile.write(found.read_bytes() if whole else listing)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_port}/simple"

    @contextmanager
    def serving(self) -> Iterator[None]:
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            self.opened.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()
