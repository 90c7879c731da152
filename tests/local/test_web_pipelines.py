"""The pages of pipelines, schedules and experiments, without running anything."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from tests.driver import Project
from tests.local.web_app import PHONE, WebApp, assert_accessible, assert_fits
from tests.unit.pipelines.compiled_pipelines import document, leaf, task


@pytest.fixture(scope="module")
def web_options() -> tuple[str, ...]:
    return ("--samples",)


@pytest.fixture(scope="module")
def web_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """With files to upload: two versions of a pipeline of every type, and what cannot run."""
    project = Project(tmp_path_factory.mktemp("pipelines"))
    parameters: dict[str, Any] = {
        "name": {"parameterType": "STRING", "description": "Who is greeted."},
        "times": {"parameterType": "NUMBER_INTEGER", "defaultValue": 2.0},
        "rate": {"parameterType": "NUMBER_DOUBLE", "defaultValue": 0.5},
        "loud": {"parameterType": "BOOLEAN", "defaultValue": False},
        "words": {"parameterType": "LIST", "defaultValue": ["a", "b"]},
        "options": {"parameterType": "STRUCT", "isOptional": True},
        "color": {"parameterType": "STRING", "literals": ["red", "blue"], "defaultValue": "red"},
    }
    pipeline = document({"hello": task("hello")}, {"hello": leaf()})
    pipeline["root"]["inputDefinitions"] = {"parameters": parameters}
    _write(project / "greeting.yaml", pipeline)
    pipeline["root"]["dag"]["tasks"]["bye"] = task("hello", after=["hello"])
    _write(project / "greeting-2.yaml", pipeline)
    pipeline["root"]["dag"]["tasks"]["hello"]["sidecars"] = []
    _write(project / "unsupported.yaml", pipeline)
    _write(project / "v1.yaml", {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"})
    (project / "pipeline.py").write_text("def greet(name: str): return {name: [}\n")
    return project


def _write(file: Path, content: dict[str, Any]) -> None:
    file.write_text(json.dumps(content))


def choose(app: WebApp, file: str) -> None:
    app.page.get_by_label("Compiled pipeline").set_input_files(app.project / file)
    app.page.get_by_role("button", name="Upload", exact=True).click()


def test_samples(web_app: WebApp) -> None:
    page = web_app.open("/pipelines")
    table = page.get_by_role("table", name="Pipelines")
    expect(table.get_by_text("Sample")).to_have_count(4)
    assert_accessible(page)
    page.keyboard.press("/")
    page.keyboard.type("tip")
    expect(table.get_by_role("row")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"q=tip"))
    page.reload()
    expect(table.get_by_role("row")).to_have_count(2)
    table.get_by_role("row").nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("taxi-tips")

    web_app.open("/pipelines?q=mnist")
    page.get_by_role("link", name="mnist", exact=True).click()
    graph = page.get_by_role("region", name="Graph of the pipeline")
    expect(graph.get_by_role("button", name="loop, for-loop-1")).to_be_visible()
    graph.get_by_role("button", name="pipeline, search").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Hide its tasks").click()
    expect(graph.get_by_role("button", name="loop, for-loop-1")).to_have_count(0)
    expect(graph.get_by_role("button", name=re.compile("pipeline, search 5 tasks"))).to_be_visible()
    assert_accessible(page)
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Delete the pipeline").click()
    page.get_by_role("button", name="Delete the pipeline").click()
    expect(table.get_by_text("Sample")).to_have_count(3)

    page.get_by_role("link", name="taxi-tips", exact=True).click()
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Archive").click()
    expect(page.get_by_text("Archived: lists do not show it.")).to_be_visible()
    page = web_app.open("/pipelines")
    expect(table.get_by_text("Sample")).to_have_count(2)
    page.get_by_label("Archived").check()
    expect(table.get_by_text("Sample")).to_have_count(3)
    page.reload()
    page.get_by_role("link", name="taxi-tips", exact=True).click()
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Take out of the archive").click()
    expect(page.get_by_text("Archived: lists do not show it.")).to_have_count(0)
    web_app.assert_no_errors()


def test_upload_and_versions(web_app: WebApp) -> None:
    page = web_app.open("/pipelines")
    page.get_by_role("button", name="Upload a pipeline").click()
    alert = page.get_by_role("alert")
    choose(web_app, "pipeline.py")
    expect(alert).to_contain_text("kfp dsl compile")
    choose(web_app, "v1.yaml")
    expect(alert).to_contain_text("a Workflow of argoproj.io/v1alpha1 is not a compiled pipeline")
    expect(alert).to_contain_text("version 2 of the kfp SDK")
    assert_accessible(page)
    choose(web_app, "greeting.yaml")
    expect(page.get_by_role("heading", level=1)).to_have_text("greeting")
    address = page.url

    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Upload a version").click()
    page.get_by_label("Compiled pipeline").set_input_files(web_app.project / "greeting-2.yaml")
    page.get_by_label("Name of the version").fill("second")
    page.get_by_role("button", name="Upload", exact=True).click()
    version = page.get_by_label("Version", exact=True)
    expect(version.locator("option:checked")).to_have_text("second (newest)")
    graph = page.get_by_role("region", name="Graph of the pipeline")
    expect(graph.get_by_role("button", name=re.compile("bye"))).to_be_visible()
    version.select_option("greeting")
    expect(graph.get_by_role("button", name=re.compile("bye"))).to_have_count(0)

    page.goto(f"{address}?tab=versions")
    page.get_by_role("button", name="Delete second").click()
    page.get_by_role("button", name="Delete the version").click()
    expect(page.get_by_role("tab", name="Versions (1)")).to_be_visible()
    page.get_by_role("tab", name="Source").click()
    expect(page.get_by_text("schemaVersion:")).to_be_visible()
    assert_accessible(page)

    web_app.open("/pipelines")
    page.get_by_role("button", name="Upload a pipeline").click()
    choose(web_app, "unsupported.yaml")
    expect(page.get_by_role("alert")).to_contain_text("cannot run here")
    expect(page.get_by_role("alert")).to_contain_text("sidecars")
    web_app.assert_no_errors("/pipelines/upload")


def test_the_form_of_the_parameters(web_app: WebApp) -> None:
    page = web_app.open("/pipelines?q=greeting")
    page.get_by_role("link", name="greeting", exact=True).click()
    page.get_by_role("link", name="Run", exact=True).click()
    start = page.get_by_role("button", name="Start the run")
    start.click()
    expect(page.get_by_text("Enter a value.")).to_be_visible()
    name = page.get_by_role("textbox", name="name (required)")
    expect(name).to_be_focused()
    name.fill("Ada")
    page.get_by_role("textbox", name="words").fill('["a", ')
    expect(page.get_by_text(re.compile("This is not JSON"))).to_be_visible()
    assert_accessible(page)
    page.get_by_role("button", name="Take the default of words").click()
    expect(page.get_by_role("textbox", name="words")).to_have_value('["a", "b"]')
    page.get_by_role("textbox", name="options").fill('{"deep": [1, null]}')
    page.get_by_role("combobox", name="loud").select_option("true")
    expect(page.get_by_role("combobox", name="color").locator("option")).to_have_text(
        ["red", "blue"]
    )
    start.click()
    page.wait_for_url(re.compile(r"/runs/\w+"))
    with web_app.server.client() as client:
        run = client.get(f"/api/v1{page.url.partition(web_app.server.address)[2]}").json()
        assert run["inputs"] == {"name": "Ada", "options": {"deep": [1, None]}, "loud": True}
        template = client.get(f"/api/v1/runs/{run['uid']}/template").json()
    assert template["parameters"] == run["inputs"]
    web_app.assert_no_errors()


def test_schedules(web_app: WebApp) -> None:
    page = web_app.open("/schedules")
    expect(page.get_by_text("Nothing is scheduled")).to_be_visible()
    page.get_by_role("link", name="New schedule").click()
    page.get_by_label("Pipeline", exact=True).select_option("data-passing")
    page.get_by_label("Name", exact=True).fill("Mondays")
    page.get_by_label("Repeat").select_option("On days of the week")
    said = page.get_by_role("status").filter(has_text="Runs")
    expect(said).to_contain_text("Runs every Monday at 09:00 UTC. In your time zone:")
    page.get_by_label("Repeat").select_option("Every so many minutes, hours or days")
    page.get_by_label("Every", exact=True).fill("90")
    page.get_by_label("Unit").select_option("minutes")
    expect(said).to_contain_text("every 1 hour 30 minutes")
    assert_accessible(page)
    page.get_by_role("button", name="Create the schedule").dblclick()
    dialog = page.get_by_role("dialog", name="Mondays")
    expect(dialog).to_contain_text("missed times are skipped")
    expect(dialog).to_contain_text("It has not run yet")
    assert_accessible(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Disable Mondays")).to_have_count(1)
    page.get_by_role("button", name="Disable Mondays").click()
    expect(page.get_by_role("row").nth(1)).to_contain_text("disabled")
    page.get_by_role("button", name="Mondays", exact=True).click()
    dialog.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete the schedule").click()
    expect(page.get_by_text("Nothing is scheduled")).to_be_visible()
    web_app.assert_no_errors()


def test_experiments(web_app: WebApp) -> None:
    page = web_app.open("/experiments")
    page.get_by_role("button", name="New experiment").click()
    page.get_by_label("Name").fill("Learning rates")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Learning rates")
    expect(dialog).to_contain_text("This experiment has no runs yet")
    assert_accessible(page)
    dialog.get_by_role("link", name="Start a run in it").click()
    page.get_by_label("Pipeline", exact=True).select_option("data-passing")
    expect(page.get_by_label("Experiment").locator("option:checked")).to_have_text("Learning rates")
    web_app.open("/experiments")
    page.get_by_role("button", name="Archive Learning rates").click()
    page.get_by_role("button", name="Archive", exact=True).click()
    row = page.get_by_role("row").filter(has_text="Learning rates")
    expect(row).to_have_count(0)
    page.get_by_label("Show archived experiments").check()
    expect(row).to_contain_text("archived")
    page.get_by_role("button", name="Unarchive Learning rates").click()
    expect(row).not_to_contain_text("archived")
    web_app.assert_no_errors()


@pytest.mark.parametrize("path", ["/pipelines", "/pipelines/start", "/schedules", "/experiments"])
def test_pages_fit_a_phone(web_app: WebApp, path: str) -> None:
    page = web_app.page
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size(PHONE)
    try:
        web_app.open(path)
        expect(page.get_by_role("status", name="Loading")).to_have_count(0)
        assert_fits(page)
    finally:
        page.set_viewport_size(size)
