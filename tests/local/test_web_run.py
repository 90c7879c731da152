"""The page of a run: tasks, logs, artifacts, and repeats with their verdict and cause."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.driver import Project
from tests.local.programs.compiling import run_script
from tests.local.web_app import PHONE, WebApp, assert_accessible, assert_fits
from tests.wait import wait_until

LINES = 300_000
IMAGE = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
NOTEBOOK = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {},
    "cells": [
        {
            "cell_type": "code",
            "source": "print(6 * 7)",
            "metadata": {},
            "execution_count": 1,
            "outputs": [{"output_type": "stream", "name": "stdout", "text": "42\n"}],
        }
    ],
}


@pytest.fixture(scope="module")
def web_options() -> tuple[str, ...]:
    return ("--runs", "1")


@pytest.fixture(scope="module")
def web_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("run-page"))
    script = Path(__file__).parent / "programs" / "run_page_pipeline.py"
    run_script(script, project.folder)
    project.write("clock.sh", "date +%s%N > now.txt; echo measured\n")
    project("exec", "--name", "clock", "--", "sh", "clock.sh", "--lr", "0.5", "--epochs=3")
    project.shell(f'seq 1 {LINES} | sed "s/^/line /"', "--name", "many")
    (project / "seen.png").write_bytes(base64.b64decode(IMAGE))
    project.write("seen.csv", "model,score\nsmall,0.5\nlarge,0.75\n")
    project.write("seen.ipynb", json.dumps(NOTEBOOK))
    copies = "for kind in png csv ipynb; do cp seen.$kind made.$kind; done"
    project.shell(copies, "--name", "files")
    project("pipeline", "run", "kinds.yaml")
    return project


def open_page(web_app: WebApp, path: str) -> Page:
    page = web_app.open(path)
    expect(page.get_by_role("tablist").first).to_be_visible()
    return page


def test_the_tasks_of_a_run(web_app: WebApp) -> None:
    page = open_page(web_app, "/runs/r1")
    graph = page.get_by_label("Tasks of the run")
    expect(graph.get_by_role("button", name=re.compile("^task, train.*succeeded"))).to_be_visible()
    expect(graph.get_by_role("button", name=re.compile("group, for-loop-"))).to_be_visible()
    graph.get_by_role("button", name=re.compile("^task, train.*succeeded")).click()
    task = page.get_by_label("Task train", exact=True)
    log = task.get_by_role("log")
    expect(log).to_contain_text("Looking for component")
    log.focus()
    page.keyboard.press("End")
    expect(log).to_contain_text("step 39")
    expect(log.get_by_text("step 39")).to_have_class("text-success")
    assert "task=train" in page.url
    assert_accessible(page)
    task.get_by_role("tab", name="Outputs").click()
    expect(task.get_by_role("group", name="Confusion matrix")).to_contain_text("80 %")
    expect(task.get_by_role("img", name=re.compile("ROC curve"))).to_be_visible()
    expect(task.get_by_text("85.0 % were predicted correctly.")).to_be_visible()
    page.reload()  # the address has the whole view
    expect(page.get_by_role("group", name="Confusion matrix")).to_be_visible()
    assert_accessible(page)
    task.get_by_role("tab", name="Why").click()
    expect(task.get_by_text("It ran because it never ran before.")).to_be_visible()
    page.get_by_role("button", name="Table").click()
    rows = page.get_by_role("table", name="Tasks").get_by_role("row")
    expect(rows).to_have_count(6)
    web_app.assert_no_errors()


def test_a_hostile_page_reaches_nothing(web_app: WebApp) -> None:
    page = open_page(web_app, "/runs/r1?tab=artifacts&file=report%3Apage")
    frame = page.frame_locator("iframe[title='HTML page']")
    found = frame.locator("#found")
    expect(found).to_contain_text("no network")
    text = found.inner_text()
    assert "reached" not in text and "fetched" not in text, text
    for what in ("page", "storage", "cookie"):
        assert f"{what} refused" in text
    assert page.url.startswith(web_app.server.address)
    # Its attempts are refused, and the console says so.
    web_app.assert_no_errors("Content Security Policy", "sandboxed", "Unsafe attempt", "Failed to")


def test_a_long_log(web_app: WebApp) -> None:
    page = open_page(web_app, f"/runs/many?tab=output&line={LINES // 2}")
    log = page.get_by_role("log")
    expect(log.get_by_text(f"line {LINES // 2}", exact=True)).to_be_visible()
    assert log.locator("li").count() < 100, "only the visible lines are in the document"
    log.focus()
    page.keyboard.press("End")
    expect(log.get_by_text(f"line {LINES}", exact=True)).to_be_visible()
    page.get_by_label("Find in the log").fill("line 12345")
    expect(page.get_by_role("status").filter(has_text="11")).to_be_visible()
    page.keyboard.press("Enter")
    expect(log.locator("mark").first).to_have_text("line 12345")
    assert "line=12345" in page.url
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    size = sum(len(f"line {n}\n") for n in range(1, LINES + 1))
    assert Path(download.value.path()).stat().st_size == size
    web_app.assert_no_errors()


def test_a_repeat_with_its_verdict_and_cause(web_app: WebApp, web_project: Project) -> None:
    page = open_page(web_app, "/runs/clock")
    expect(page.get_by_role("heading", level=1)).to_have_text("clock")
    assert_accessible(page)
    page.get_by_role("tab", name="Repeats").click()
    expect(page.get_by_text("It has not been repeated yet")).to_be_visible()
    web_project.command("repeat", "clock")
    repeats = page.get_by_role("tabpanel")
    listed = repeats.get_by_label("Repeats").get_by_role("listitem")
    expect(listed).to_have_count(1)
    expect(listed).to_contain_text("different")
    expect(repeats.get_by_label("Cause", exact=True)).to_contain_text("the clock")
    expect(repeats.get_by_role("link", name="Compare")).to_be_visible()
    page.get_by_role("button", name="Repeat", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("--lr")).to_have_value("0.5")
    dialog.get_by_role("button", name="Repeat", exact=True).click()
    expect(listed).to_have_count(2)
    expect(repeats.get_by_text("Some outputs differ.")).to_be_visible()
    cause = repeats.get_by_label("Cause", exact=True)
    expect(cause).to_contain_text("the clock")
    expect(cause).to_contain_text("confirmed")
    expect(repeats).to_contain_text("now.txt")
    assert_accessible(page)
    page.get_by_role("button", name="Repeat", exact=True).click()
    dialog.get_by_label("--lr").fill("0.25")
    dialog.get_by_role("button", name="Run with these values").click()
    expect(listed).to_have_count(3)
    expect(repeats.get_by_text("word 3: 0.25")).to_be_visible()
    web_app.assert_no_errors()


def test_a_repeated_run_with_the_verdict_of_each_task(
    web_app: WebApp, web_project: Project
) -> None:
    """Repeated at the command line, and seen in the app."""
    web_project.command("repeat", "r1")
    page = open_page(web_app, "/runs/r1?tab=repeats")
    repeats = page.get_by_role("tabpanel")
    expect(repeats.get_by_label("Repeats").get_by_role("listitem")).to_have_count(1)
    expect(repeats).to_contain_text("the worst of 5 tasks")
    expect(repeats.get_by_text("r1/train", exact=True)).to_be_visible()
    assert_accessible(page)
    web_app.assert_no_errors()


def test_tags_notes_and_files(web_app: WebApp) -> None:
    page = open_page(web_app, "/runs/e1")
    page.get_by_role("button", name="Add a tag").click()
    page.get_by_label("New tag").fill("baseline")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Tags").get_by_role("link", name="baseline")).to_be_visible()
    page.get_by_role("button", name="Remove the tag baseline").click()
    expect(page.get_by_label("Tags").get_by_role("link")).to_have_count(0)
    page.get_by_label("New note").fill("worth keeping")
    page.keyboard.press("Enter")
    expect(page.get_by_text("worth keeping")).to_be_visible()
    page.get_by_role("link", name="now.txt").click()
    expect(page.get_by_role("dialog").get_by_label("The text of the file")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Environment").click()
    expect(page.get_by_label("Machine")).to_contain_text("architecture")
    assert_accessible(page)
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Open a TensorBoard").click()
    expect(page).to_have_url(re.compile(r"/tensorboards/new\?run=e1$"))
    web_app.assert_no_errors()


def test_previews_of_files(web_app: WebApp) -> None:
    page = open_page(web_app, "/runs/files")
    dialog = page.get_by_role("dialog")
    page.get_by_role("link", name="made.png").click()
    image = dialog.get_by_role("img", name="The recorded file")
    expect(image).to_be_visible()
    assert image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 1
    page.keyboard.press("Escape")
    page.get_by_role("row").filter(has_text="made.csv").click()
    expect(dialog.get_by_role("row").filter(has_text="large")).to_contain_text("0.75")
    assert_accessible(page)
    page.keyboard.press("Escape")
    page.get_by_role("row").filter(has_text="made.ipynb").click()
    cell = dialog.get_by_role("region", name="Cell 1")
    expect(cell).to_contain_text("print(6 * 7)")
    expect(cell).to_contain_text("42")
    assert_accessible(page)
    web_app.assert_no_errors()


def test_a_whole_run_is_tagged_noted_and_exported(web_app: WebApp, tmp_path: Path) -> None:
    page = open_page(web_app, "/runs/r1?tab=details")
    page.get_by_role("button", name="Add a tag").click()
    page.get_by_label("New tag").fill("paper")
    page.keyboard.press("Enter")
    page.get_by_label("Tags").get_by_role("link", name="paper").click()
    expect(page.get_by_role("table").get_by_role("row")).to_have_count(2)
    page = open_page(web_app, "/runs/r1?tab=details")
    page.get_by_label("New note").fill("all of figure 2")
    page.keyboard.press("Enter")
    expect(page.get_by_text("all of figure 2")).to_be_visible()
    for label, count in (("Bundle for another project", None), ("W3C PROV (JSON)", 8)):
        page.get_by_role("button", name="Export", exact=True).click()
        with page.expect_download() as started:
            page.get_by_role("menuitem", name=label).click()
        export = tmp_path / started.value.suggested_filename
        started.value.save_as(export)
        if count is None:
            Project(tmp_path / "other")("pull", str(export))
        else:
            document = json.loads(export.read_text())
            assert len(document["activity"]) >= count
            assert "clew:Execution" in json.dumps(document)
    web_app.assert_no_errors()


def test_a_run_that_is_terminated(web_app: WebApp) -> None:
    """Opened by the address that the stock KFP client prints."""
    project, server = web_app.project, web_app.server
    body: dict[str, Any] = {
        "spec": (project / "gated.yaml").read_text(),
        "parameters": {"gate": str(project / "gate")},
    }
    with server.client() as client:
        uid = client.post("/api/v1/runs", json=body).json()["uid"]
    page = web_app.page
    page.goto(f"{server.address}/#/runs/details/{uid}")
    expect(page.get_by_role("heading", level=1)).to_have_text("gated")
    task = page.get_by_role("button", name=re.compile("^task, wait.*running"))
    expect(task).to_be_visible()
    task.click()
    expect(page.get_by_role("log")).to_contain_text("it waits")
    page.get_by_role("button", name="Terminate").click()
    page.get_by_role("dialog").get_by_role("button", name="Terminate").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    expect(page.get_by_role("heading", level=1).locator("..")).to_contain_text("canceled")
    with server.client() as client:
        wait_until(
            "its end", lambda: client.get(f"/api/v1/runs/{uid}").json()["state"] == "canceled"
        )
    project.write("gate", "")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("heading", level=1).locator("..")).to_contain_text("succeeded")
    page.evaluate("location.hash = '#/pipelines'")  # another such address, where the app is open
    expect(page.get_by_role("heading", level=1)).to_have_text("Pipelines")
    web_app.assert_no_errors()


def test_what_failed_is_retried(web_app: WebApp) -> None:
    project, server = web_app.project, web_app.server
    body: dict[str, Any] = {
        "spec": (project / "closed.yaml").read_text(),
        "parameters": {"gate": str(project / "open")},
    }
    with server.client() as client:
        uid = client.post("/api/v1/runs", json=body).json()["uid"]
    page = open_page(web_app, f"/runs/{uid}")
    state = page.get_by_role("heading", level=1).locator("..")
    expect(state).to_contain_text("failed")
    project.write("open", "")
    page.get_by_role("button", name="Retry what failed").click()
    expect(state).to_contain_text("succeeded")
    web_app.assert_no_errors()


def test_on_a_phone(web_app: WebApp) -> None:
    page = web_app.page
    before = page.viewport_size
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    for path in (
        "/runs/r1?task=train",
        "/runs/r1?tab=artifacts",
        "/runs/many?tab=output",
        "/runs/e1",
    ):
        open_page(web_app, path)
        assert_fits(page)
    assert_accessible(page)
    assert before is not None
    page.set_viewport_size(before)
    web_app.assert_no_errors()
