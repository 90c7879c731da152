"""Home and Settings of the web app, live, and what happens when the server restarts."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.local.web_app import WebApp, assert_accessible, assert_fits

TRAIN = """\
import json, sys
rate = float(sys.argv[2])
json.dump({"accuracy": 1 - rate}, open("metrics.json", "w"))
if rate > 0.5:
    sys.exit("the rate is too high")
"""


def test_home_guides_and_then_shows_work(web_app: WebApp, web_project: Project) -> None:
    page = web_app.open("/")
    expect(page).to_have_title("Home · Clew")
    first_steps = page.locator("section").filter(has_text="Nothing is recorded in this project yet")
    expect(first_steps.get_by_text("clew exec -- python3 train.py")).to_be_visible()
    assert_accessible(page)
    Path(web_project / "train.py").write_text(TRAIN)
    web_project.command("exec", "--name", "first", "python3", "train.py", "--rate", "0.25")
    recent = page.locator("section").filter(has=page.get_by_role("heading", name="Recent results"))
    expect(recent.get_by_role("listitem").filter(has_text="first")).to_contain_text("0.75accuracy")
    web_project.command("exec", "python3", "train.py", "--rate", "0.9")
    failed = page.locator("section").filter(has=page.get_by_role("heading", name="Failed"))
    expect(failed.get_by_role("listitem")).to_contain_text("the rate is too high")
    assert_accessible(page)
    failed.get_by_role("link", name="python3 train.py --rate 0.9").click()
    expect(page).to_have_url(re.compile(r"/runs/e2$"))
    expect(page.get_by_role("alert")).to_have_text("the rate is too high")
    expect(page.get_by_label("Metrics")).to_contain_text("accuracy")
    expect(page.get_by_label("About the command")).to_contain_text("1 file")
    web_app.assert_no_errors()


def test_a_token_is_created_used_and_revoked(web_app: WebApp) -> None:
    page = web_app.open("/settings")
    expect(page).to_have_url(re.compile("/settings/tokens$"))
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name").fill("CI")
    page.keyboard.press("Enter")
    token = page.get_by_test_id("token").inner_text()
    assert_accessible(page)
    with web_app.server.client(headers={"Authorization": f"Bearer {token}"}) as client:
        assert client.get("/api/v1/executions").status_code == 200
        page.get_by_role("button", name="Done").click()
        row = page.get_by_role("row").filter(has_text="CI")
        expect(row).to_contain_text("in 4 weeks")
        row.get_by_role("button", name="Revoke CI").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(page.get_by_text("There are no access tokens")).to_be_visible()
        assert client.get("/api/v1/executions").status_code == 401
    web_app.assert_no_errors()


def test_remotes_are_added_tested_and_removed(web_app: WebApp, web_project: Project) -> None:
    page = web_app.open("/settings/remotes")
    lab = str(web_project.folder.parent / "lab")
    page.get_by_role("button", name="Add remote").click()
    page.get_by_label("Name", exact=True).fill("lab")
    page.get_by_label("Address").fill(lab)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("The remote lab was added")).to_be_visible()
    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_text("nothing is there yet")).to_be_visible()
    assert_accessible(page)
    web_project("remote", "remove", "lab")
    expect(page.get_by_text("There are no remotes")).to_be_visible()
    web_app.assert_no_errors()


@pytest.mark.parametrize("section", ["culling", "appearance", "administration", "about"])
def test_each_section_is_accessible(web_app: WebApp, section: str) -> None:
    page = web_app.open(f"/settings/{section}")
    expect(page.get_by_role("tab", selected=True)).to_have_text(section.capitalize())
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    assert_accessible(page)
    assert_fits(page)
    web_app.assert_no_errors()


def test_the_appearance_is_kept(web_app: WebApp) -> None:
    page = web_app.open("/settings/appearance")
    page.get_by_label("Theme", exact=True).select_option("dark")
    page.get_by_label("Exact times").select_option("utc")
    page.reload()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    expect(page.get_by_text("Theme: dark")).to_be_visible()
    expect(page.get_by_label("Exact times")).to_have_value("utc")
    expect(page.get_by_text(re.compile("Such as .* UTC"))).to_be_visible()
    page.get_by_label("Theme", exact=True).select_option("system")


def test_a_restart_of_the_server_is_survived(web_app: WebApp, web_project: Project) -> None:
    page = web_app.open("/")
    expect(page.get_by_text("first")).to_be_visible()
    port = web_app.server.address.rpartition(":")[2]
    assert isinstance(web_app.server, Server)
    web_app.server.stop()
    expect(page.get_by_text("The server cannot be reached")).to_be_visible()
    web_project.command("exec", "--name", "meanwhile", "python3", "train.py", "--rate", "0.1")
    with run_server(web_project, "--port", port) as again:
        expect(page.get_by_text("The server cannot be reached")).to_have_count(0)
        expect(page.get_by_role("link", name="meanwhile")).to_be_visible()
        _log_out(page, again)
    web_app.assert_no_errors("ERR_CONNECTION_REFUSED", "net::", "401")


def _log_out(page: Page, server: Server) -> None:
    """A session that ends elsewhere is noticed, and logging in leads back to the page."""
    other = page.context.new_page()
    other.goto(f"{server.address}/settings/about")
    other.get_by_role("button", name="Log out").click()
    expect(other.get_by_role("heading", name="Log in to Clew")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.get_by_role("dialog", name="You are logged out")).to_be_visible()
    other.get_by_label("Token").fill("wrong")
    other.keyboard.press("Enter")
    expect(other.get_by_role("alert")).to_contain_text("This is not the token of the project.")
    assert_accessible(other)
    other.get_by_label("Token").fill(server.token)
    other.keyboard.press("Enter")
    expect(other).to_have_url(re.compile("/settings/about$"))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
    other.close()
