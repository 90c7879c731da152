"""Uploads by the viewer's page, in a real browser: the order of its requests, and breaks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.local.browsing import BROWSER, Page, browsing
from tests.local.test_cmd_viewer import Viewer, viewing

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs chromium (apt install chromium)")

PIECE = 32 << 20
SAID = "[...document.querySelectorAll('.upload')].map((line) => line.children[2].textContent)"
ENDED = "document.querySelector('.upload button')?.textContent === 'Dismiss'"


class Shown:
    """A viewer, which may be killed and come again, and its page, whose uploads are held."""

    def __init__(self, stack: ExitStack, here: Path) -> None:
        self.folder = here / "data"
        self.folder.mkdir()
        self._stack = stack
        self.page: Page = stack.enter_context(browsing(here))
        self.viewer: Viewer = stack.enter_context(viewing(self.folder))
        self.look()
        self.page.hold("*/files/*.bin")

    def look(self) -> None:
        self.page.go("about:blank")
        self.page.go(self.viewer.address)
        self.page.until("document.getElementById('count')?.textContent.length > 0")

    def kill(self) -> None:
        self.viewer.process.kill()
        self.viewer.process.wait()

    def again(self) -> None:
        """On the same port."""
        words = ("--port", str(self.viewer.port))
        self.viewer = self._stack.enter_context(viewing(self.folder, *words))

    def sends(self) -> dict[str, Any]:
        """The next part that is sent, which is held; it may be asked before what is here."""
        while (held := self.page.held())["request"]["method"] == "HEAD":
            self.page.let_go(held)
        return held


@pytest.fixture
def shown(tmp_path: Path) -> Iterator[Shown]:
    with ExitStack() as stack:
        yield Shown(stack, tmp_path)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file of two pieces."""
    made = tmp_path / "large.bin"
    made.write_bytes(os.urandom(PIECE + (1 << 20)))
    return made


def part(held: dict[str, Any]) -> str:
    headers = {name.lower(): value for name, value in held["request"]["headers"].items()}
    return str(headers["content-range"])


def asked(held: dict[str, Any]) -> tuple[str, str]:
    return held["request"]["method"], held["request"]["url"].rpartition("/")[2]


def test_files_are_dropped_and_two_are_sent_at_a_time(shown: Shown, tmp_path: Path) -> None:
    page = shown.page
    files = [tmp_path / name for name in ("a.bin", "b.bin", "c.bin")]
    for file in files:
        file.write_bytes(os.urandom(1000))
    page.drop(*files)
    heads = [page.held(), page.held()]
    assert [asked(one) for one in heads] == [("HEAD", "a.bin"), ("HEAD", "b.bin")]
    for one in heads:
        page.let_go(one)
    parts = {asked(one): one for one in (page.held(), page.held())}
    assert parts.keys() == {("PUT", "a.bin"), ("PUT", "b.bin")}
    assert page.value(SAID)[2] == "waits"
    page.let_go(parts["PUT", "b.bin"])
    third = page.held()
    assert asked(third) == ("HEAD", "c.bin")
    assert page.value(SAID)[1] == "1.0 kB"
    page.let_go(parts["PUT", "a.bin"])
    page.let_go(third)
    page.let_go(page.held())
    page.until(SAID, ["1.0 kB"] * 3)
    for file in files:
        assert (shown.folder / file.name).read_bytes() == file.read_bytes()
    assert page.problems == []


def test_an_upload_goes_on_after_a_break_and_when_it_is_chosen_again(
    shown: Shown, large: Path
) -> None:
    page, size = shown.page, large.stat().st_size
    page.pick("#picked", large)
    first = shown.sends()
    assert part(first) == f"bytes 0-{PIECE - 1}/{size}"
    page.let_go(first)
    second = shown.sends()
    shown.kill()
    page.let_go(second)
    page.until(SAID, ["goes on in a moment"])
    shown.again()
    assert part(shown.sends()) == part(second) == f"bytes {PIECE}-{size - 1}/{size}"
    shown.look()
    page.pick("#picked", large)
    chosen = shown.sends()
    assert part(chosen) == part(second)
    page.let_go(chosen)
    page.until(ENDED)
    assert (shown.folder / large.name).read_bytes() == large.read_bytes()


def test_an_upload_that_only_was_not_put_in_its_place_is_not_sent_again(
    shown: Shown, large: Path
) -> None:
    page, size = shown.page, large.stat().st_size
    page.pick("#picked", large)
    page.let_go(shown.sends())
    last = shown.sends()
    shown.kill()
    (draft,) = shown.folder.iterdir()
    with draft.open("ab") as file:  # as if it had come, and the viewer had ended just then
        file.write(large.read_bytes()[PIECE:])
    page.let_go(last)
    page.until(SAID, ["goes on in a moment"])
    shown.again()
    rest = shown.sends()
    assert part(rest) == f"bytes */{size}"
    page.let_go(rest)
    page.until(ENDED)
    assert (shown.folder / large.name).read_bytes() == large.read_bytes()
    assert os.listdir(shown.folder) == [large.name]
