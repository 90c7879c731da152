"""The pages of notebooks, TensorBoards and volumes, with the back end of this machine."""

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, Route, expect
from tests.driver import Project
from tests.local.web_app import (
    PHONE,
    WebApp,
    assert_accessible,
    assert_fits,
    open_path,
    open_web_app,
    row_of,
)

NOTEBOOKS = "/jupyter/api/namespaces/local/notebooks"
BOARDS = "/tensorboards/api/namespaces/local/tensorboards"


@pytest.fixture(scope="module")
def web_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    # pip finds nothing: the installation of a missing program fails, whatever network there is.
    return Project(tmp_path_factory.mktemp("web"), PIP_NO_INDEX="1")


@pytest.fixture(scope="module")
def web_app(browser: BrowserContext, web_project: Project) -> Iterator[WebApp]:
    with open_web_app(browser, web_project, up=True) as app:
        yield app


def ask(app: WebApp, path: str, method: str = "GET", **body: Any) -> Any:
    """What the server answers to a program with the token."""
    with app.server.client() as client:
        response = client.request(method, path, json=body or None)
    assert response.status_code < 400, response.text
    return response.json()


def notebook_names(app: WebApp) -> list[str]:
    return sorted(one["name"] for one in ask(app, NOTEBOOKS)["notebooks"])


def expect_state(page: Page, name: str, state: str) -> None:
    expect(row_of(page, name).get_by_text(state, exact=True)).to_be_visible()


def choose_action(page: Page, name: str, action: str) -> None:
    row_of(page, name).get_by_role("button", name=f"Actions of {name}").click()
    page.get_by_role("menuitem", name=action).click()


def test_an_empty_page_shows_the_command_that_fills_it(web_app: WebApp) -> None:
    for path, made in (
        ("/notebooks", "notebook-1"),
        ("/tensorboards", "tensorboard-1"),
        ("/experiments", "first"),
        ("/schedules", "Every hour"),
        ("/settings/tokens", "CI"),
    ):
        page = web_app.open(path)
        command = page.locator("code", has_text="curl ").inner_text()
        ran = subprocess.run(
            ["bash", "-c", f"{command} --fail --silent --show-error"],
            cwd=web_app.project.folder,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, f"{command}\n{ran.stderr}"
        expect(page.get_by_role("table").get_by_text(made, exact=True)).to_be_visible()
    ask(web_app, f"{NOTEBOOKS}/notebook-1", "DELETE")
    ask(web_app, f"{BOARDS}/tensorboard-1", "DELETE")
    expect(web_app.open("/notebooks").get_by_text("There are no notebooks yet")).to_be_visible()
    web_app.assert_no_errors()


def test_a_notebook_is_created_once_and_shown_in_every_window(web_app: WebApp) -> None:
    page = web_app.open("/notebooks")
    assert_accessible(page)
    other = web_app.new_window("/notebooks")
    expect(other.get_by_text("There are no notebooks yet")).to_be_visible()

    page.get_by_role("link", name="New notebook").click()
    expect(page.get_by_label("Name")).to_have_value("notebook-1")
    page.get_by_role("button", name="Create").dblclick()

    for window in (page, other):
        expect_state(window, "notebook-1", "running")
    assert notebook_names(web_app) == ["notebook-1"]
    connect = row_of(page, "notebook-1").get_by_role("link", name="Connect")
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size({"width": 800, "height": 600})  # less than the columns need
    expect(connect).to_be_in_viewport(ratio=1)
    page.set_viewport_size(size)
    with page.context.expect_page() as opened:
        connect.click()
    tab = opened.value  # the environment of the tests has Jupyter Server without JupyterLab
    web_app.watch(tab)
    expect(tab.get_by_text("there is no page to work in")).to_be_visible()
    expect(tab.get_by_role("button", name="Install JupyterLab")).to_be_visible()
    assert_accessible(tab)
    with page.context.expect_page() as served:
        tab.get_by_role("link", name="Open the page of Jupyter Server").click()
    expect(served.value).to_have_url(
        re.compile(rf"{web_app.server.apps}/notebook/local/notebook-1")
    )
    served.value.close()
    tab.close()

    page.get_by_role("button", name="Stop notebook-1").click()
    for window in (page, other):
        expect_state(window, "notebook-1", "stopped")
    other.get_by_role("button", name="Start notebook-1").click()
    for window in (page, other):
        expect(window.get_by_role("button", name="Stop notebook-1")).to_be_visible()
    other.close()
    web_app.assert_no_errors()


def test_a_repeated_request_creates_nothing_again(web_app: WebApp) -> None:
    """The response is lost: the user tries again."""
    page = web_app.open("/notebooks/new")
    lost = []

    def lose_response(route: Route) -> None:
        if route.request.method == "POST" and not lost:
            lost.append(route.fetch().status)
            route.abort()
        else:
            route.continue_()

    page.route(f"**{NOTEBOOKS}", lose_response)
    page.get_by_label("Name").fill("twice")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    assert lost == [200]
    # Live updates have told the form of the notebook that it has made itself.
    page.get_by_role("button", name="Create").click()
    expect(row_of(page, "twice")).to_be_visible()
    page.unroute(f"**{NOTEBOOKS}")
    assert notebook_names(web_app).count("twice") == 1
    web_app.errors.clear()


def test_a_form_stays_when_its_list_cannot_be_read_again(web_app: WebApp) -> None:
    page = web_app.open("/notebooks/new")
    name = page.get_by_label("Name", exact=True)
    name.fill("typed")
    page.route(f"**{NOTEBOOKS}", lambda route: route.fulfill(status=403, json={}))
    with page.expect_response(lambda response: response.status == 403):
        ask(web_app, NOTEBOOKS, "POST", name="of-others")  # what another window creates
    page.evaluate("new Promise(requestAnimationFrame)")
    expect(name).to_have_value("typed")
    page.unroute(f"**{NOTEBOOKS}")
    ask(web_app, f"{NOTEBOOKS}/of-others", "DELETE")
    web_app.assert_no_errors("403")


def test_details_follow_the_log_and_change_the_yaml(web_app: WebApp) -> None:
    ask(web_app, NOTEBOOKS, "POST", name="studied", environment={"MODE": "slow"})
    page = web_app.open("/notebooks/local/studied?tab=logs")
    expect(page.get_by_role("log")).to_contain_text("Jupyter Server")
    expect(page.get_by_text("running", exact=True)).to_be_visible()
    for tab, text in (("Events", "It is running"), ("Conditions", "Ready")):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel")).to_contain_text(text)
        assert_accessible(page)

    page.get_by_role("tab", name="Advanced").click()
    editor = page.get_by_role("textbox", name="YAML of studied")
    expect(editor).to_contain_text("slow")
    details = ask(web_app, "/api/v1/namespaces/local/notebooks/studied")
    replace_text(page, editor, details["yaml"].replace("slow", "fast"))
    assert_accessible(page)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    web_app.assert_no_errors()

    replace_text(page, editor, details["yaml"].replace("kind: Notebook", "kind: Secret"))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("kind and metadata.name cannot be changed")
    ask(web_app, "/api/v1/namespaces/local/notebooks/studied", "PATCH", environment={"MODE": "x"})
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("kind and metadata.name cannot be changed")
    replace_text(page, editor, details["yaml"].replace("slow", "mine"))
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("was changed since you opened it")
    page.get_by_role("button", name="Discard changes").click()
    expect(editor).to_contain_text("value: x")
    web_app.errors.clear()

    page.get_by_role("link", name="Notebooks").first.click()
    choose_action(page, "studied", "Edit")
    reload_with_the_back_end_last(page)
    page.get_by_text("Environment variables").click()
    expect(page.get_by_label("Value 1")).to_have_value("x")
    page.get_by_label("Value 1").fill("edited")
    assert_accessible(page)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1, name="studied", exact=True)).to_be_visible()
    resource = ask(web_app, f"{NOTEBOOKS}/studied")["notebook"]
    assert '"edited"' in json.dumps(resource["spec"])
    web_app.assert_no_errors()


def reload_with_the_back_end_last(page: Page) -> None:
    """Read the page again; what it asks for arrives in an order that hid the form."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/api/v1/backend", hold)
    with page.expect_request_finished(lambda request: request.url.endswith("/studied")):
        page.reload()
    page.unroute("**/api/v1/backend", hold)  # which lets the held ones go on


def replace_text(page: Page, editor: Locator, text: str) -> None:
    editor.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(text)


def test_a_volume_in_use_is_not_deleted(web_app: WebApp) -> None:
    page = web_app.open("/volumes/new")
    page.get_by_label("Name").fill("corpus")
    page.get_by_role("button", name="Create").click()
    expect_state(page, "corpus", "ready")

    page.goto(f"{web_app.server.address}/notebooks/new")
    page.get_by_label("Name").fill("reader")
    page.get_by_text("Volumes", exact=True).last.click()
    page.get_by_role("button", name="Add a data volume").click()
    row = page.get_by_role("group", name="Data volume 1")
    expect(row.get_by_role("option", name="From a snapshot")).to_be_disabled()
    row.get_by_label("Source").select_option("existing")
    row.get_by_label("Volume", exact=True).select_option("corpus")
    assert_accessible(page)
    page.get_by_role("button", name="Create").click()
    expect(row_of(page, "reader")).to_be_visible()

    page.goto(f"{web_app.server.address}/volumes/local/corpus")
    expect(page.get_by_role("button", name="Delete")).to_be_disabled()
    expect(page.get_by_text("Not possible: in use: reader")).to_be_visible()
    assert_accessible(page)
    with web_app.server.client() as client:
        refused = client.delete("/volumes/api/namespaces/local/pvcs/corpus")
    assert refused.status_code == 409
    assert "reader" in refused.json()["log"]

    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Browse").click()
    viewer = opened.value
    expect(viewer).to_have_url(re.compile(rf"{web_app.server.apps}/pvcviewers/local/corpus/"))
    viewer.close()

    page.goto(f"{web_app.server.address}/notebooks")
    choose_action(page, "reader", "Delete")
    dialog = page.get_by_role("dialog", name="Delete the notebook reader?")
    expect(dialog).to_contain_text("Its volumes stay")
    assert_accessible(page)
    dialog.get_by_role("button", name="Delete").click()
    expect(row_of(page, "reader")).to_have_count(0)
    page.get_by_role("link", name="Volumes").first.click()
    choose_action(page, "corpus", "Delete")
    dialog = page.get_by_role("dialog", name="Delete the volume corpus?")
    expect(dialog.get_by_role("button", name="Delete")).to_be_disabled()
    dialog.get_by_label("Type corpus to confirm").fill("corpus")
    dialog.get_by_role("button", name="Delete").click()
    expect(row_of(page, "corpus")).to_have_count(0)
    web_app.assert_no_errors()


def test_a_missing_program_is_installed_on_demand(web_app: WebApp) -> None:
    page = web_app.open("/tensorboards/new?logspath=pvc%3A%2F%2Fproject%2Flogs")
    expect(page.get_by_label("Volume")).to_have_value("project")
    expect(page.get_by_label("Directory")).to_have_value("logs")
    page.get_by_role("button", name="Create").click()
    expect_state(page, "tensorboard-1", "problem")
    expect(row_of(page, "tensorboard-1")).to_contain_text("TensorBoard is not installed")
    page.get_by_role("button", name="Install TensorBoard").click()
    installation = page.get_by_role("region", name="Installation of TensorBoard")
    expect(installation.get_by_role("alert")).to_contain_text("The installation failed")
    expect(installation.get_by_role("button", name="Try again")).to_be_visible()
    assert_accessible(page)
    web_app.assert_no_errors()


def test_what_is_wrong_with_the_administrators_file_is_shown(web_app: WebApp) -> None:
    file = web_app.project / ".clew/spawner_ui_config.yaml"
    file.write_text("spawnerFormDefaults: {cpu: {value: many}}")
    page = web_app.open("/settings/administration")
    expect(page.get_by_text("not in use", exact=True)).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("cpu")
    assert_accessible(page)
    page = web_app.open("/notebooks/new")
    banner = page.get_by_text("The administrator's defaults are not used")
    expect(banner).to_contain_text("cpu")
    expect(page.get_by_role("button", name="Create")).to_be_enabled()
    file.write_text("spawnerFormDefaults: {cpu: {value: '0.25', readOnly: true}}")
    page.reload()
    expect(page.get_by_label("CPU cores", exact=True)).to_have_value("0.25")
    expect(page.get_by_label("CPU cores", exact=True)).to_be_disabled()
    expect(banner).to_have_count(0)
    file.unlink()
    web_app.assert_no_errors()


def test_the_idle_time_of_this_machine_is_changed(web_app: WebApp) -> None:
    page = web_app.open("/settings/culling")
    expect(page.get_by_text("Nothing is stopped because it is idle.")).to_be_visible()
    limit = page.get_by_label("Stop what is idle for so many minutes")
    limit.fill("none")
    expect(page.get_by_text("Enter a number above 0, or nothing.")).to_be_visible()
    limit.fill("120")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("What is idle for 2 h 0 min is stopped.")).to_be_visible()
    assert_accessible(page)
    limit.fill("")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Nothing is stopped because it is idle.")).to_be_visible()
    web_app.assert_no_errors()


def test_the_keyboard_does_everything(web_app: WebApp) -> None:
    page = web_app.open("/notebooks")
    page.get_by_role("link", name="New notebook").focus()
    page.keyboard.press("Enter")
    name = page.get_by_label("Name")
    name.focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("Typed")
    page.keyboard.press("Enter")
    expect(name).to_be_focused()
    expect(name).to_have_attribute("aria-invalid", "true")
    page.keyboard.press("Control+A")
    page.keyboard.type("a-typed")
    page.keyboard.press("Enter")
    expect(row_of(page, "a-typed")).to_be_visible()

    page.keyboard.press("/")
    page.keyboard.type("a-typ")
    expect(page).to_have_url(re.compile("filter=a-typ"))
    expect(page.get_by_role("row")).to_have_count(2)
    page.reload()
    expect(page.get_by_label("Filter notebooks")).to_have_value("a-typ")
    row_of(page, "a-typed").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1, name="a-typed", exact=True)).to_be_visible()
    page.get_by_role("button", name="Delete").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    # A moment after the dialog is gone, its focus is back where it was opened.
    expect(page.get_by_role("button", name="Delete")).to_be_focused()
    page.keyboard.press("Enter")
    dialog.get_by_role("button", name="Delete").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/notebooks$"))
    expect(row_of(page, "a-typed")).to_have_count(0)
    # The page may ask for the notebook once more while it is left.
    web_app.assert_no_errors("a-typed", "status of 404")


def test_the_pages_fit_a_phone(web_app: WebApp) -> None:
    page = web_app.page
    size = page.viewport_size
    page.set_viewport_size(PHONE)
    ask(web_app, NOTEBOOKS, "POST", name="narrow", environment={"MODE": "a-long-value" * 9})
    for path in (
        *("/notebooks", "/notebooks/new", "/volumes/local/project?tab=advanced"),
        *("/notebooks/local/narrow", "/notebooks/local/narrow/edit"),
        *("/tensorboards", "/tensorboards/new", "/volumes", "/volumes/new"),
    ):
        open_path(page, web_app.server, path)
        expect(page.get_by_role("status", name="Loading")).to_have_count(0)
        assert_fits(page)
        if path.startswith("/volumes"):
            assert_accessible(page)
        words = re.findall(r"\b(?:Pod|PVC|CRD|StatefulSet)s?\b", page.inner_text("main"))
        assert not words, f"{path} says {words}"
    assert size is not None
    page.set_viewport_size(size)
    web_app.assert_no_errors()
    ask(web_app, f"{NOTEBOOKS}/narrow", "DELETE")


def test_the_page_of_what_cannot_be_opened(web_app: WebApp) -> None:
    """It is the proxy's, not the app's, and says what to do."""
    ask(web_app, NOTEBOOKS, "POST", name="resting")
    ask(web_app, "/api/v1/namespaces/local/notebooks/resting", "PATCH", stopped=True)
    page = web_app.page
    page.goto(f"{web_app.server.address}/notebook/local/resting/")
    expect(page.get_by_role("heading", level=1)).to_contain_text("resting")
    assert_accessible(page)
    size = page.viewport_size
    page.set_viewport_size(PHONE)
    assert_fits(page)
    assert size is not None
    page.set_viewport_size(size)
    ask(web_app, f"{NOTEBOOKS}/resting", "DELETE")
    web_app.assert_no_errors("/notebook/local/resting/")
