"""A scientist's journey: a notebook, code in its kernel, a TensorBoard beside it, the files."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.driver import Project
from tests.local.web_app import WebApp, open_web_app, row_of

PROGRAMS = Path(__file__).parents[2] / "build" / "notebooks" / "bin"
CODE = """
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter("{logs}")
for step in range(5):
    value = Summary.Value(tag="loss", simple_value=1 / (step + 1))
    writer.add_event(Event(step=step, wall_time=step, summary=Summary(value=[value])))
writer.close()
print("written", 6 * 7)
"""

pytestmark = pytest.mark.skipif(
    not (PROGRAMS / "jupyter-lab").exists(),
    reason="needs JupyterLab and TensorBoard: make build/notebooks/.ready (make test does it)",
)


@pytest.fixture(scope="module")
def web_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    path = os.pathsep.join((str(PROGRAMS), os.environ["PATH"]))
    return Project(tmp_path_factory.mktemp("notebook"), PATH=path)


@pytest.fixture(scope="module")
def web_app(browser: BrowserContext, web_project: Project) -> Iterator[WebApp]:
    with open_web_app(browser, web_project, up=True) as app:
        yield app


def open_from_row(page: Page, name: str, link: str) -> Page:
    """Open the link of a row, which leads to a tab of its own."""
    with page.context.expect_page() as opened:
        row_of(page, name).get_by_role("link", name=link).click()
    return opened.value


def run_in_kernel(app: WebApp, notebook: str, code: str, output: str) -> Page:
    """Open the notebook from the list, and run code in a kernel of it. The tab."""
    lab = open_from_row(app.page, notebook, "Connect")
    lab.get_by_title(re.compile("ipykernel")).first.click()
    expect(lab.get_by_role("button", name="Python 3 (ipykernel) | Idle")).to_be_visible()
    cell = lab.locator(".jp-CodeCell .cm-content").first
    cell.fill(code)
    expect(cell).to_contain_text("written")
    cell.press("Shift+Enter")
    expect(lab.locator(".jp-OutputArea-output").first).to_have_text(output)
    assert lab.url.startswith(app.server.apps), "another origin than the app's"
    return lab


def open_curves(app: WebApp, logs: str, *, timeout: float | None = None) -> Page:
    """Create a TensorBoard of these logs, and open it when it runs. The tab."""
    page = app.open(f"/tensorboards/new?logspath={quote(logs, safe='')}")
    page.get_by_role("button", name="Create").click()
    state = row_of(page, "tensorboard-1").get_by_text("running", exact=True)
    expect(state).to_be_visible(timeout=timeout)
    board = open_from_row(page, "tensorboard-1", "Open")
    expect(board.get_by_text("loss", exact=True).first).to_be_visible()
    return board


def browse(app: WebApp, volume: str, *, timeout: float | None = None) -> Page:
    """Open the files of a volume, which has a directory of logs. The tab."""
    page = app.open("/volumes")
    files = open_from_row(page, volume, "Browse")
    expect(files.get_by_role("link", name="logs")).to_be_visible(timeout=timeout)
    return files


def test_from_a_notebook_to_its_curves_and_files(web_app: WebApp) -> None:
    page = web_app.open("/notebooks")
    page.get_by_role("link", name="New notebook").click()
    page.get_by_role("button", name="Create").click()
    expect(row_of(page, "notebook-1").get_by_text("running", exact=True)).to_be_visible()
    code = CODE.format(logs=web_app.project.folder / "logs")
    for tab in (
        run_in_kernel(web_app, "notebook-1", code, "written 42"),
        open_curves(web_app, "pvc://project/logs"),
        browse(web_app, "project"),
    ):
        tab.close()
    web_app.assert_no_errors()
