"""The frame of the web app: what all pages share."""

import re

from playwright.sync_api import expect
from tests.local.web_app import PHONE, WebApp, assert_accessible, assert_fits

from clew.server.web_app import DIRECTORY

FIRST_LOAD = 300_000
"""Bytes of compressed JavaScript that the first page may load."""


def test_the_first_page_loads_little_javascript(web_app: WebApp) -> None:
    loaded: set[str] = set()
    page = web_app.page
    page.on("response", lambda response: loaded.add(response.url))
    web_app.open("/")
    page.wait_for_load_state("networkidle")
    names = {url.rpartition("/")[2] for url in loaded if url.endswith(".js")}
    sizes = {name: (DIRECTORY / "assets" / f"{name}.gz").stat().st_size for name in names}
    assert any(name.startswith("index-") for name in names)
    assert sum(sizes.values()) <= FIRST_LOAD, sizes


def test_an_unknown_address_shows_the_app(web_app: WebApp) -> None:
    page = web_app.open("/schedule")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    assert_accessible(page)
    page.get_by_role("link", name="Go to Home").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Home")
    with web_app.server.client() as client:
        for path, accept in (("/schedule", "*/*"), ("/api/v1/none", "text/html")):
            response = client.get(path, headers={"Accept": accept})
            assert response.status_code == 404
            assert response.json()["code"] == "not-found"
    web_app.assert_no_errors("404 ")


def test_the_frame_is_accessible(web_app: WebApp) -> None:
    page = web_app.open("/")
    assert_accessible(page)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert_accessible(page)
    page.keyboard.press("Escape")
    web_app.assert_no_errors()


def test_the_frame_fits_a_phone(web_app: WebApp) -> None:
    page = web_app.page
    size = page.viewport_size
    page.set_viewport_size(PHONE)
    web_app.open("/")
    assert_fits(page)
    page.get_by_role("button", name="Open the navigation").click()
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    assert_accessible(page)
    page.get_by_role("navigation").get_by_role("link", name=re.compile("Settings")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
    assert_fits(page)
    assert size is not None
    page.set_viewport_size(size)
