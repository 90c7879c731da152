"""Uploads by the viewer's page, in a real browser: the order of its requests, and breaks."""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect
from tests.browser import page_errors, wait_for_value
from tests.local.test_cmd_viewer import Viewer, viewing

PIECE = 32 << 20
STATES = "[...document.querySelectorAll('.upload')].map((line) => line.children[2].textContent)"


class Upload:
    """A viewer, which may be killed and started again, and its page, whose uploads are held."""

    def __init__(self, stack: ExitStack, here: Path, browser: BrowserContext) -> None:
        self.folder = here / "data"
        self.folder.mkdir()
        self._stack = stack
        self._held: list[Route] = []
        self.page: Page = stack.enter_context(browser.new_page())
        self.viewer: Viewer = stack.enter_context(viewing(self.folder))
        self.open_page()
        self.page.route("**/files/*.bin", self._hold)

    def _hold(self, route: Route) -> None:
        self._held.append(route)

    def open_page(self) -> None:
        self.page.goto(self.viewer.address)
        expect(self.page.locator("#count")).not_to_be_empty()

    def kill_viewer(self) -> None:
        self.viewer.process.kill()
        self.viewer.process.wait()

    def restart_viewer(self) -> None:
        """On the same port."""
        words = ("--port", str(self.viewer.port))
        self.viewer = self._stack.enter_context(viewing(self.folder, *words))

    def next_request(self) -> Route:
        """The next request that is held; `continue_` sends it."""
        until = time.monotonic() + 60
        while not self._held:
            assert time.monotonic() < until, "the page sends no request"
            self.page.wait_for_timeout(20)
        return self._held.pop(0)

    def next_piece(self) -> Route:
        """The next piece that is sent. The page may first ask what the server has."""
        while (held := self.next_request()).request.method == "HEAD":
            held.continue_()
        return held


@pytest.fixture
def upload(tmp_path: Path, browser: BrowserContext) -> Iterator[Upload]:
    with ExitStack() as stack:
        yield Upload(stack, tmp_path, browser)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A file of two pieces."""
    made = tmp_path / "large.bin"
    made.write_bytes(os.urandom(PIECE + (1 << 20)))
    return made


def content_range(held: Route) -> str:
    return held.request.headers["content-range"]


def method_and_name(held: Route) -> tuple[str, str]:
    return held.request.method, held.request.url.rpartition("/")[2]


def test_files_are_dropped_and_two_are_sent_at_a_time(upload: Upload, tmp_path: Path) -> None:
    page = upload.page
    files = [tmp_path / name for name in ("a.bin", "b.bin", "c.bin")]
    for file in files:
        file.write_bytes(os.urandom(1000))
    page.locator("body").drop({"files": files})
    heads = [upload.next_request(), upload.next_request()]
    assert [method_and_name(one) for one in heads] == [("HEAD", "a.bin"), ("HEAD", "b.bin")]
    for one in heads:
        one.continue_()
    parts = {method_and_name(one): one for one in (upload.next_request(), upload.next_request())}
    assert parts.keys() == {("PUT", "a.bin"), ("PUT", "b.bin")}
    assert page.evaluate(STATES)[2] == "waits"
    parts["PUT", "b.bin"].continue_()
    third = upload.next_request()
    assert method_and_name(third) == ("HEAD", "c.bin")
    assert page.evaluate(STATES)[1] == "1.0 kB"
    parts["PUT", "a.bin"].continue_()
    third.continue_()
    upload.next_request().continue_()
    wait_for_value(page, STATES, ["1.0 kB"] * 3)
    for file in files:
        assert (upload.folder / file.name).read_bytes() == file.read_bytes()
    assert page_errors(page) == []


def test_an_interrupted_upload_resumes_by_itself_and_after_a_reload(
    upload: Upload, large: Path
) -> None:
    page, size = upload.page, large.stat().st_size
    page.set_input_files("#picked", large)
    first = upload.next_piece()
    assert content_range(first) == f"bytes 0-{PIECE - 1}/{size}"
    first.continue_()
    second = upload.next_piece()
    upload.kill_viewer()
    second.continue_()
    wait_for_value(page, STATES, ["continues in a moment"])
    upload.restart_viewer()
    assert content_range(second) == f"bytes {PIECE}-{size - 1}/{size}"
    assert content_range(upload.next_piece()) == content_range(second)
    upload.open_page()
    page.set_input_files("#picked", large)
    chosen = upload.next_piece()
    assert content_range(chosen) == content_range(second)
    chosen.continue_()
    expect(page.locator(".upload button")).to_have_text("Dismiss")
    assert (upload.folder / large.name).read_bytes() == large.read_bytes()


def test_a_complete_upload_is_only_moved_to_its_place(upload: Upload, large: Path) -> None:
    page, size = upload.page, large.stat().st_size
    page.set_input_files("#picked", large)
    upload.next_piece().continue_()
    last = upload.next_piece()
    upload.kill_viewer()
    (draft,) = upload.folder.iterdir()
    with draft.open("ab") as file:  # as if it had come, and the viewer had ended just then
        file.write(large.read_bytes()[PIECE:])
    last.continue_()
    wait_for_value(page, STATES, ["continues in a moment"])
    upload.restart_viewer()
    rest = upload.next_piece()
    assert content_range(rest) == f"bytes */{size}"
    rest.continue_()
    expect(page.locator(".upload button")).to_have_text("Dismiss")
    assert (upload.folder / large.name).read_bytes() == large.read_bytes()
    assert os.listdir(upload.folder) == [large.name]
