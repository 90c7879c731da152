"""The viewer's page in a real browser, through the server: what is done, and what is seen."""

from __future__ import annotations

import base64
import os
import struct
import wave
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.browsing import BROWSER, Page, browsing
from tests.local.serving import Server, serving
from tests.local.test_cmd_viewer import PREFIX, viewing
from tests.local.upstreams import Table

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium (apt install chromium)")

NAMED = "td > :nth-child(2)"
NAMES = (
    "[...document.querySelectorAll('#entries tr')]"
    f".map((row) => row.querySelector('{NAMED}').textContent)"
)
CHOSEN = f"document.querySelector('tr.chosen {NAMED}')?.textContent"
ASKED = "document.getElementById('ask').open"
FILM = """(async () => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 48 });
  const recorder = new MediaRecorder(canvas.captureStream(), { mimeType: "video/webm" });
  const filmed = new Promise((done) => { recorder.ondataavailable = (event) => done(event.data); });
  recorder.start();
  for (let frame = 0; frame < 10; frame += 1) {
    canvas.getContext("2d").fillRect(frame, 0, 1, 48);
    await new Promise((done) => { setTimeout(done, 20); });
  }
  recorder.stop();
  const data = new Uint8Array(await (await filmed).arrayBuffer());
  return btoa(String.fromCharCode(...data));
})()"""
"""The browser films a line that moves."""


@dataclass
class Seen:
    page: Page
    folder: Path
    server: Server

    def named(self, *names: str) -> None:
        self.page.until(NAMES, list(names))


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    here = tmp_path_factory.mktemp("page")
    table = Table(here / "targets.toml")
    (here / "data" / "sub").mkdir(parents=True)
    (here / "data" / "notes.txt").write_text("one\r\ntwo\r\n")
    (here / "data" / "out").symlink_to("/etc/passwd")
    (here / "data" / os.fsdecode(b"caf\xe9")).write_text("latin")
    with (
        viewing(here / "data") as viewer,
        serving(Project(here), "--targets", str(table.path)) as server,
        browsing(here) as page,
    ):
        table.add("pvcviewer/me/data", viewer.port)
        page.go(f"{server.address}/?token={server.token}")
        page.until("document.readyState === 'complete' && document.title.startsWith('Clew')")
        yield Seen(page, here / "data", server)


@pytest.fixture
def seen(opened: Seen) -> Seen:
    """The volume's first page, whatever was looked at before."""
    opened.page.go("about:blank")
    opened.page.go(f"{opened.server.address}{PREFIX}")
    return opened


def test_it_all_works_by_keyboard(seen: Seen, tmp_path: Path) -> None:
    page = seen.page
    seen.named("sub", "caf\ufffd", "notes.txt", "out")
    page.press("ArrowDown")
    page.until(CHOSEN, "sub")
    page.press("Enter")
    page.until("location.hash", "#/sub/")
    seen.named()
    page.until("document.getElementById('empty').checkVisibility()")

    page.press("n")
    page.until(ASKED)
    page.type("made here")
    page.press("Enter")
    seen.named("made here")
    assert (seen.folder / "sub" / "made here").is_dir()

    (tmp_path / "sent.bin").write_bytes(os.urandom(40 << 20))  # more than one piece
    page.pick("#picked", tmp_path / "sent.bin")
    seen.named("made here", "sent.bin")
    page.until("document.querySelector('.upload button').textContent", "Dismiss")
    assert (seen.folder / "sub" / "sent.bin").read_bytes() == (tmp_path / "sent.bin").read_bytes()

    for _ in range(2):
        page.press("ArrowDown")
    page.until(CHOSEN, "sent.bin")
    page.press("F2")
    page.until(ASKED)
    page.type("kept")  # the part before the dot is selected
    page.press("Enter")
    seen.named("made here", "kept.bin")
    page.until(CHOSEN, "kept.bin")
    page.press("Delete")
    page.until(ASKED)
    page.press("Enter")
    seen.named("made here")
    assert not (seen.folder / "sub" / "kept.bin").exists()
    page.press("Backspace")
    page.until("location.hash", "#/")
    assert page.problems == []


def test_text_is_edited_and_nobody_is_overwritten_unasked(seen: Seen) -> None:
    page, file = seen.page, seen.folder / "notes.txt"
    page.go(f"{seen.server.apps}{PREFIX}#/?show=notes.txt")
    area = "document.querySelector('#content textarea')"
    page.until(f"{area}?.value", "one\ntwo\n")
    page.value(f"{area}.focus(), {area}.setSelectionRange(0, 0)")
    page.type("zero\n")
    page.press("s", ctrl=True)
    page.until("document.getElementById('count').textContent.length > 0")
    page.until("fetch('files/notes.txt').then((a) => a.text()).then((t) => t.length)", 16)
    assert file.read_bytes() == b"zero\r\none\r\ntwo\r\n"
    file.write_bytes(b"theirs")
    page.type("mine\n")
    page.press("s", ctrl=True)
    page.until(ASKED)
    page.press("Escape")
    page.until(ASKED, False)
    assert file.read_bytes() == b"theirs"
    page.press("s", ctrl=True)
    page.until(ASKED)
    page.press("Enter")
    page.until("fetch('files/notes.txt').then((a) => a.text()).then((t) => t.slice(0, 4))", "zero")
    errors = [one for one in page.problems if "412" not in one]  # which is told to the console
    assert errors == []
    page.problems.clear()


def test_pictures_sound_and_film_are_shown(seen: Seen) -> None:
    page, folder = seen.page, seen.folder / "sub"
    page.until("document.getElementById('count')?.textContent.length > 0")
    (folder / "a.png").write_bytes(picture(7, 5))
    with wave.open(str(folder / "a.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(2 * 2000))
    (folder / "a.webm").write_bytes(base64.b64decode(page.value(FILM)))
    for name, element, what, wanted in (
        ("a.png", "img", "[it.naturalWidth, it.naturalHeight]", [7, 5]),
        ("a.wav", "audio", "it.duration", 0.25),
        ("a.webm", "video", "[it.videoWidth, it.videoHeight]", [64, 48]),
    ):
        page.go(f"{seen.server.apps}{PREFIX}#/sub/?show={name}")
        page.until(f"((it) => it && {what})(document.querySelector('#content {element}'))", wanted)
        (folder / name).unlink()
    page.press("Escape")
    page.until("document.getElementById('preview').hidden")
    assert page.problems == []


def picture(width: int, height: int) -> bytes:
    """A PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(width)) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_names_that_are_no_text_open_and_links_out_do_not(seen: Seen) -> None:
    page = seen.page
    page.go(f"{seen.server.apps}{PREFIX}#/?show=caf%25E9")
    page.until("document.querySelector('#content textarea')?.value", "latin")
    page.go(f"{seen.server.apps}{PREFIX}#/?show=out")
    page.until("document.getElementById('problem').textContent", "403 Forbidden")
    page.problems.clear()


def test_an_address_leads_to_nothing_but_files(seen: Seen) -> None:
    page = seen.page
    for away in ("..", "%2e%2e", ".%2E", "..\\..\\.."):
        page.go("about:blank")
        page.go(f"{seen.server.apps}{PREFIX}#/{away}/{away}/{away}/{away}/healthz")
        page.until("document.getElementById('problem')?.textContent.startsWith('there is no ')")
        page.go(f"{seen.server.apps}{PREFIX}#/?show={away}/{away}/{away}/{away}/healthz")
        page.until("/^40[04] /.test(document.getElementById('problem')?.textContent)")
    page.problems.clear()


def test_what_is_seen_is_in_the_address(seen: Seen) -> None:
    page = seen.page
    page.go(f"{seen.server.apps}{PREFIX}#/?sort=size&order=desc")
    page.until("document.querySelector('th[aria-sort=descending]')?.textContent", "Size")
    first = page.value(NAMES)
    page.value("document.old = true")
    page.do("Page.reload")
    page.until("document.old", None)
    page.until(NAMES, first)
    page.until("location.hash", "#/?sort=size&order=desc")
    page.value("document.getElementById('filter').focus()")
    page.type("note")
    seen.named("notes.txt")


def test_light_and_dark(seen: Seen) -> None:
    for scheme, colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(21, 24, 28)")):
        seen.page.colours(scheme)
        seen.page.until("getComputedStyle(document.body).backgroundColor", colour)
    assert len(seen.page.picture()) > 5_000
