"""A real browser: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

_TIMEOUT = 60_000
"""Milliseconds to wait for what must come; only a failing test waits that long."""
expect.set_options(timeout=_TIMEOUT)


@contextmanager
def launch_browser() -> Iterator[BrowserContext]:
    """Run Chromium until the end of the block. Meanwhile this thread cannot run asyncio loops."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.fail("Chromium is not installed: apt install chromium (make test does it)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--disable-dev-shm-usage"], timeout=_TIMEOUT
        )
        context = browser.new_context(viewport={"width": 1400, "height": 850})
        context.set_default_timeout(_TIMEOUT)
        yield context
        browser.close()


def wait_for_value(page: Page, expression: str, expected: Any = True) -> None:
    """Wait until the expression has the expected value in the page.

    It is checked by time, not by frame: a page that is not painted has no frames.
    """
    equal = f"async (expected) => JSON.stringify(await ({expression})) === JSON.stringify(expected)"
    page.wait_for_function(equal, arg=expected, polling=20)


def page_errors(page: Page) -> list[str]:
    """The errors that the page caused so far: exceptions and what the console says of errors."""
    logged = [message.text for message in page.console_messages() if message.type == "error"]
    return [*map(str, page.page_errors()), *logged]
