"""A real browser: Debian's Chromium, driven by Playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Error, Page, expect, sync_playwright
from tests.wait import wait_until

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
    """Wait until the expression has the expected value in the page; it may be a promise.

    Playwright's `wait_for_function` takes a promise for a value that is true, and does not wait.
    """

    def holds() -> bool:
        try:
            return bool(page.evaluate(expression) == expected)
        except Error as error:
            if "context was destroyed" in error.message:  # the page is being left
                return False
            raise

    wait_until(f"{expression} is {expected}", holds)


def page_errors(page: Page) -> list[str]:
    """The errors that the page caused so far: exceptions and what the console says of errors."""
    logged = [message.text for message in page.console_messages() if message.type == "error"]
    return [*map(str, page.page_errors()), *logged]
