"""The viewer's page in a real browser, through the server: what is done, and what is seen."""

import base64
import os
import re
import struct
import wave
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.browser import page_errors, wait_for_value
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.local.test_cmd_viewer import PREFIX, viewing
from tests.local.upstream import TargetTable

FILM = """
GkXfo59ChoEBQveBAULygQRC84EIQoKEd2VibUKHgQRChYECGFOAZwEAAAAAAAHDEU2bdLlNu4tTq4QVSalmU6yBbk27i1Or
hBZUrmtTrIGTTbuLU6uEH0O2dVOsgdRNu4xTq4QcU7trU6yCAbHsrgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
AAAAAAAAAAAAAAAAAAAVSalmoCrXsYMPQkBEiYRCoMtETYCGQ2hyb21lV0GGQ2hyb21lFlSua7yuuteBAXPFh7pL1WRLd5OD
gQFV7oEBhoVWX1ZQOOCdsIFAuoEwU8CBAVWwkFWxgQFVuYECVbqBDVW7gQEfQ7Z1AQAAAAAAANHngQCg2qGpgQAAANACAJ0B
KkAAMAAABwiFhYiZhIgBJBAANHJ+ZjzfisAA/v+6/0B1oaymqu6BAaWl0AIAnQEqQAAwAAAHCIWFiJmEiAEkEAA0cn5mPN+K
wAD+/7qDAKC3oZaBACgA0QEAABAJIADAAMLBf6AARGAAdaGZppfugQGlktEBAAAQCSAAwADCwX+gAERgAPuBAKC3oZaBAFAA
0QEAABAJIADAAMLBf6AARGAAdaGZppfugQGlktEBAAAQCSAAwADCwX+gAERgAPuBKBxTu2uNu4uzgQC3hveBAfGB1A==
"""
"""Three frames of 64 by 48 pixels, as WebM."""


@dataclass
class Volume:
    """A volume in the viewer, opened in the browser."""

    page: Page
    folder: Path
    server: Server

    def expect_names(self, *names: str) -> None:
        expect(self.page.locator("#entries tr td:first-child > :nth-child(2)")).to_have_text(names)

    def expect_chosen(self, name: str) -> None:
        expect(self.page.locator("tr.chosen td:first-child > :nth-child(2)")).to_have_text(name)

    def go(self, state: str) -> None:
        self.page.goto("about:blank")
        self.page.goto(f"{self.server.apps}{PREFIX}#/{state}")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def expect_question(self) -> None:
        expect(self.page.locator("#ask")).to_be_visible()


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, browser: BrowserContext
) -> Iterator[tuple[Server, Path]]:
    """A server in front of a viewer, to which the browser is logged in; and the viewer's volume."""
    here = tmp_path_factory.mktemp("page")
    table = TargetTable(here / "targets.toml")
    (here / "data" / "sub").mkdir(parents=True)
    (here / "data" / "notes.txt").write_text("one\r\ntwo\r\n")
    (here / "data" / "out").symlink_to("/etc/passwd")
    (here / "data" / os.fsdecode(b"caf\xe9")).write_text("latin")
    with (
        viewing(here / "data") as viewer,
        run_server(Project(here), "--targets", str(table.path)) as running,
        browser.new_page() as page,
    ):
        table.add("pvcviewer/me/data", viewer.port)
        page.goto(f"{running.address}/?token={running.token}")
        wait_for_value(page, "document.title.startsWith('Clew')")
        yield running, here / "data"


@pytest.fixture
def volume(server: tuple[Server, Path], browser: BrowserContext) -> Iterator[Volume]:
    running, folder = server
    with browser.new_page() as page:
        page.goto(f"{running.address}{PREFIX}")
        yield Volume(page, folder, running)


def test_everything_works_by_keyboard(volume: Volume, tmp_path: Path) -> None:
    page = volume.page
    volume.expect_names("sub", "caf\ufffd", "notes.txt", "out")
    volume.press("ArrowDown")
    volume.expect_chosen("sub")
    volume.press("Enter")
    wait_for_value(page, "location.hash", "#/sub/")
    volume.expect_names()
    expect(page.locator("#empty")).to_be_visible()

    volume.press("n")
    volume.expect_question()
    page.keyboard.insert_text("made here")
    volume.press("Enter")
    volume.expect_names("made here")
    assert (volume.folder / "sub" / "made here").is_dir()

    (tmp_path / "sent.bin").write_bytes(os.urandom(40 << 20))  # more than one piece
    page.set_input_files("#picked", tmp_path / "sent.bin")
    volume.expect_names("made here", "sent.bin")
    expect(page.locator(".upload button")).to_have_text("Dismiss")
    assert (volume.folder / "sub" / "sent.bin").read_bytes() == (tmp_path / "sent.bin").read_bytes()

    for _ in range(2):
        volume.press("ArrowDown")
    volume.expect_chosen("sent.bin")
    volume.press("F2")
    volume.expect_question()
    page.keyboard.insert_text("kept")  # the part before the dot is selected
    volume.press("Enter")
    volume.expect_names("made here", "kept.bin")
    volume.expect_chosen("kept.bin")
    volume.press("Delete")
    volume.expect_question()
    volume.press("Enter")
    volume.expect_names("made here")
    assert not (volume.folder / "sub" / "kept.bin").exists()
    volume.press("Backspace")
    wait_for_value(page, "location.hash", "#/")
    assert page_errors(page) == []


def test_text_is_edited_and_a_changed_file_is_not_overwritten(volume: Volume) -> None:
    page, file = volume.page, volume.folder / "notes.txt"
    volume.go("?show=notes.txt")
    area = page.locator("#content textarea")
    expect(area).to_have_value("one\ntwo\n")
    area.evaluate("area => (area.focus(), area.setSelectionRange(0, 0))")
    page.keyboard.insert_text("zero\n")
    volume.press("Control+s")
    wait_for_value(page, "fetch('files/notes.txt').then((a) => a.text()).then((t) => t.length)", 16)
    assert file.read_bytes() == b"zero\r\none\r\ntwo\r\n"
    file.write_bytes(b"theirs")
    page.keyboard.insert_text("mine\n")
    volume.press("Control+s")
    volume.expect_question()
    volume.press("Escape")
    expect(page.locator("#ask")).not_to_be_visible()
    assert file.read_bytes() == b"theirs"
    volume.press("Control+s")
    volume.expect_question()
    volume.press("Enter")
    start = "fetch('files/notes.txt').then((a) => a.text()).then((t) => t.slice(0, 4))"
    wait_for_value(page, start, "zero")
    assert [error for error in page_errors(page) if "412" not in error] == []


def test_images_audio_and_video_are_shown(volume: Volume) -> None:
    page, folder = volume.page, volume.folder / "sub"
    expect(page.locator("#count")).not_to_be_empty()
    (folder / "a.png").write_bytes(picture(7, 5))
    with wave.open(str(folder / "a.wav"), "wb") as sound:
        sound.setparams((1, 2, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(2 * 2000))
    (folder / "a.webm").write_bytes(base64.b64decode(FILM))
    for name, element, what, wanted in (
        ("a.png", "img", "[it.naturalWidth, it.naturalHeight]", [7, 5]),
        ("a.wav", "audio", "it.duration", 0.25),
        ("a.webm", "video", "[it.videoWidth, it.videoHeight]", [64, 48]),
    ):
        volume.go(f"sub/?show={name}")
        wait_for_value(
            page, f"((it) => it && {what})(document.querySelector('#content {element}'))", wanted
        )
        (folder / name).unlink()
    volume.press("Escape")
    expect(page.locator("#preview")).to_be_hidden()
    assert page_errors(page) == []


def picture(width: int, height: int) -> bytes:
    """A PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(width)) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_names_that_are_not_utf8_open_and_links_outside_do_not(volume: Volume) -> None:
    page = volume.page
    volume.go("?show=caf%25E9")
    expect(page.locator("#content textarea")).to_have_value("latin")
    volume.go("?show=out")
    expect(page.locator("#problem")).to_have_text("403 Forbidden")


def test_an_address_cannot_leave_the_volume(volume: Volume) -> None:
    page = volume.page
    for away in ("..", "%2e%2e", ".%2E", "..\\..\\.."):
        volume.go(f"{away}/{away}/{away}/{away}/healthz")
        expect(page.locator("#problem")).to_have_text(re.compile("^there is no "))
        volume.go(f"?show={away}/{away}/{away}/{away}/healthz")
        expect(page.locator("#problem")).to_have_text(re.compile("^40[04] "))


def test_the_view_is_in_the_url(volume: Volume) -> None:
    page = volume.page
    volume.go("?sort=size&order=desc")
    expect(page.locator("th[aria-sort=descending]")).to_have_text("Size")
    names = page.locator("#entries tr td:first-child > :nth-child(2)").all_text_contents()
    page.reload()
    volume.expect_names(*names)
    wait_for_value(page, "location.hash", "#/?sort=size&order=desc")
    page.fill("#filter", "note")
    volume.expect_names("notes.txt")


def test_light_and_dark(volume: Volume) -> None:
    for scheme, colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(21, 24, 28)")):
        volume.page.emulate_media(color_scheme=scheme)
        wait_for_value(volume.page, "getComputedStyle(document.body).backgroundColor", colour)
    assert len(volume.page.screenshot()) > 5_000
