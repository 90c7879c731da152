"""A real browser, driven over its own protocol: what a person does, and what they see."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from websockets.sync.client import ClientConnection, connect

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 60.0
_CODES = {"Enter": 13, "Backspace": 8, "Escape": 27, "F2": 113, "Delete": 46}
_CODES |= {"ArrowDown": 40, "ArrowUp": 38, "Home": 36}
_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--window-size=1200,700",
)


class Page:
    """One tab."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._asked = 0
        self._held: list[dict[str, Any]] = []
        self.problems: list[str] = []
        for domain in ("Page", "Runtime", "Log", "DOM"):
            self.do(f"{domain}.enable")

    def do(self, method: str, **given: Any) -> dict[str, Any]:
        self._asked += 1
        self._socket.send(json.dumps({"id": self._asked, "method": method, "params": given}))
        while True:
            said = json.loads(self._socket.recv(PATIENCE))
            if said.get("id") == self._asked:
                assert "error" not in said, (method, said)
                found: dict[str, Any] = said["result"]
                return found
            self._heard(said)

    def _heard(self, said: dict[str, Any]) -> None:
        """What went wrong in the page, by the browser's word; and what it would ask for."""
        given = said.get("params", {})
        if said.get("method") == "Fetch.requestPaused":
            self._held.append(given)
        if said.get("method") == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(given["exceptionDetails"]))
        elif said.get("method") == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.problems.append(json.dumps(given["entry"]))

    def go(self, address: str) -> None:
        self.do("Page.navigate", url=address)

    def value(self, expression: str) -> Any:
        found = self.do(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, (expression, found)
        return found["result"].get("value")

    def until(self, expression: str, wanted: Any = True) -> None:
        """Wait until the page shows it."""
        end = time.monotonic() + PATIENCE
        while (found := self.value(expression)) != wanted:
            assert time.monotonic() < end, f"{expression} is {found}, not {wanted}"
            time.sleep(0.02)

    def hold(self, addresses: str) -> None:
        """From now on, what is asked for at these addresses waits to be let go."""
        self._held.clear()
        self.do("Fetch.enable", patterns=[{"urlPattern": addresses}])

    def held(self) -> dict[str, Any]:
        """The next request that waits."""
        end = time.monotonic() + PATIENCE
        while not self._held:
            assert time.monotonic() < end, "nothing was asked for"
            self.value("new Promise((done) => setTimeout(done, 20))")
        return self._held.pop(0)

    def let_go(self, request: dict[str, Any]) -> None:
        self.do("Fetch.continueRequest", requestId=request["requestId"])

    def press(self, key: str, *, ctrl: bool = False) -> None:
        code = _CODES.get(key, ord(key.upper()) if len(key) == 1 else 0)
        given: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": code, "modifiers": 2 * ctrl}
        if len(key) == 1 and not ctrl:
            given["text"] = key
        elif key == "Enter":
            given["text"] = "\r"
        self.do("Input.dispatchKeyEvent", type="keyDown", **given)
        given.pop("text", None)
        self.do("Input.dispatchKeyEvent", type="keyUp", **given)

    def type(self, text: str) -> None:
        self.do("Input.insertText", text=text)

    def pick(self, selector: str, *files: Path) -> None:
        """Choose files in the dialogue that the browser would show."""
        root = self.do("DOM.getDocument")["root"]["nodeId"]
        node = self.do("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.do("DOM.setFileInputFiles", nodeId=node, files=[str(file) for file in files])

    def drop(self, *files: Path) -> None:
        """Let go of files over the middle of the page, as from a file manager."""
        data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
        for step in ("dragEnter", "dragOver", "drop"):
            self.do("Input.dispatchDragEvent", type=step, x=400, y=300, data=data)

    def colours(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.do("Emulation.setEmulatedMedia", features=features)

    def picture(self) -> bytes:
        return base64.b64decode(self.do("Page.captureScreenshot")["data"])


@contextmanager
def browsing(folder: Path) -> Iterator[Page]:
    """A browser with nothing in it, until the end of the block."""
    assert BROWSER is not None
    home = folder / "browser"
    command = [BROWSER, *_OPTIONS, f"--user-data-dir={home}", "about:blank"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            told = home / "DevToolsActivePort"
            end = time.monotonic() + PATIENCE
            while not (told.exists() and len(told.read_text().splitlines()) == 2):
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.02)
            port = told.read_text().splitlines()[0]
            tabs = httpx2.get(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE).json()
            address = next(tab for tab in tabs if tab["type"] == "page")["webSocketDebuggerUrl"]
            with connect(address, max_size=None, open_timeout=PATIENCE) as socket:
                yield Page(socket)
        finally:
            process.terminate()
            process.wait(PATIENCE)
