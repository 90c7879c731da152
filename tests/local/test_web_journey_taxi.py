"""A user uploads the taxi pipeline, runs it twice, compares the runs, and schedules it."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from tests.driver import Project
from tests.local.web_app import WebApp
from tests.wait import wait_until

from clew.server.catalogue.pipelines.samples import DIRECTORY

EXAMPLE = Path(__file__).parents[2] / "examples/taxi"


@pytest.fixture(scope="module")
def web_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("taxi"))
    add_trips(project)
    return project


def add_trips(project: Project) -> None:
    """A few hundred made-up trips, and the compiled pipeline."""
    with (project / "trips.csv").open("w") as trips:
        command = [sys.executable, EXAMPLE / "make_trips.py", "300"]
        subprocess.run(command, check=True, stdout=trips)
    shutil.copy(DIRECTORY / "taxi-tips.yaml", project / "taxi.yaml")


@pytest.fixture(scope="module")
def web_options() -> tuple[str, ...]:
    return ("--runs", "1")


def upload(app: WebApp) -> Page:
    page = app.open("/pipelines")
    page.get_by_role("button", name="Upload a pipeline").click()
    page.get_by_label("Compiled pipeline").set_input_files(app.project / "taxi.yaml")
    expect(page.get_by_label("Name", exact=True)).to_have_value("taxi")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("taxi")
    return page


def start(app: WebApp, click: Callable[[], None]) -> dict[str, Any]:
    """The run that a click started, when it has ended."""
    click()
    app.page.wait_for_url(re.compile(r"/runs/\w+"))
    run = app.page.url.rpartition("/")[2]
    with app.server.client() as client:

        def ended() -> dict[str, Any] | None:
            found: dict[str, Any] = client.get(f"/api/v1/runs/{run}").json()
            return found if found["state"] not in ("pending", "running") else None

        return wait_until("the end of the run", ended)


def look_at_the_graph(page: Page) -> None:
    graph = page.get_by_role("region", name="Graph of the pipeline")
    graph.get_by_role("button", name="Python function, train").click()
    expect(page.get_by_text("def train(")).to_be_visible()
    page.reload()
    expect(page.get_by_text("def train(")).to_be_visible()


def run_once(app: WebApp) -> str:
    """The id of a run that a double click started, after a value that is not valid."""
    page = app.page
    page.get_by_role("link", name="Run", exact=True).click()
    iterations = page.get_by_role("textbox", name="iterations")
    expect(iterations).to_have_value("100")
    expect(page.get_by_text("The number of trees.")).to_be_visible()
    iterations.fill("many")
    page.get_by_role("button", name="Start the run").click()
    expect(page.get_by_text("Enter a whole number, such as 10.")).to_be_visible()
    expect(iterations).to_be_focused()
    iterations.fill("10")
    page.get_by_label("Name", exact=True).fill("quick")
    run = start(app, page.get_by_role("button", name="Start the run").dblclick)
    assert (run["state"], run["name"], run["error"]) == ("succeeded", "quick", None)
    assert run["inputs"]["iterations"] == 10
    return str(run["id"])


def run_another_like_it(app: WebApp) -> str:
    page = app.page
    row = page.get_by_role("row").filter(has_text="quick")
    expect(row).to_have_count(1)  # the second click started nothing
    expect(row).to_contain_text("succeeded")
    expect(row).to_contain_text("mean absolute error")
    row.get_by_role("link", name="Clone quick").click()
    expect(page.get_by_role("textbox", name="iterations")).to_have_value("10")
    page.get_by_role("textbox", name="learning_rate").fill("0.05")
    page.get_by_label("Name", exact=True).fill("careful")
    run = start(app, page.get_by_role("button", name="Start the run").click)
    states = {task["name"]: task["state"] for task in run["tasks"]}
    whys = {task["name"]: task["why"] for task in run["tasks"]}
    assert (states["fetch"], states["train"]) == ("reused", "succeeded"), whys
    return str(run["id"])


def schedule(page: Page) -> None:
    page.get_by_role("link", name="Schedule", exact=True).click()
    page.get_by_role("textbox", name="iterations").fill("10")
    page.get_by_label("Name", exact=True).fill("Often")
    page.get_by_label("Repeat").select_option("Cron expression")
    page.get_by_label("Cron expression").fill("0 30 9 * *")
    expect(page.get_by_role("alert")).to_contain_text("five fields")
    page.get_by_label("Cron expression").fill("*/2 * * * * *")
    expect(page.get_by_role("status").filter(has_text="every 2 seconds")).to_be_visible()
    page.get_by_role("button", name="Create the schedule").click()
    dialog = page.get_by_role("dialog", name="Often")
    expect(dialog.get_by_text("the newest version")).to_be_visible()
    expect(dialog.get_by_role("table", name="Runs")).to_contain_text("succeeded")
    dialog.get_by_role("button", name="Disable").click()
    expect(dialog.get_by_text("disabled")).to_be_visible()


def test_upload_run_compare_and_schedule(web_app: WebApp) -> None:
    page = web_app.open("/pipelines")
    expect(page.get_by_text("There are no pipelines yet")).to_be_visible()
    use_the_pipeline(web_app)


def use_the_pipeline(app: WebApp) -> str:
    """Upload it, run it twice, compare the runs, and schedule it; the id of the first run."""
    page = upload(app)
    pipeline = page.url
    look_at_the_graph(page)
    first = run_once(app)
    page.goto(f"{pipeline}?tab=runs")
    second = run_another_like_it(app)

    page.goto(f"{pipeline}?tab=runs")
    for run in (first, second):
        page.get_by_role("checkbox", name=f"Select {run}").check()
    page.get_by_role("link", name="Compare 2 runs").click()
    expect(page.get_by_text("learning_rate").first).to_be_visible()
    expect(page.get_by_text("0.05").first).to_be_visible()

    page.goto(pipeline)
    schedule(page)
    app.assert_no_errors("schedule-times")
    return first
