"""The table of runs, and the comparison, of a real server in a real browser."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from tests.driver import Project
from tests.local.recorded_runs import record_execution, record_runs
from tests.local.web_app import PHONE, WebApp, assert_accessible, assert_fits
from tests.wait import wait_until

EXECUTIONS, RUNS = 36, 4
COMPARED = "/compare?id=%5B%22e36%22%2C%22e12%22%2C%22e4%22%5D"


@pytest.fixture(scope="module")
def web_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("web-runs"))
    record_runs(Path(project.folder), EXECUTIONS, RUNS)
    return project


def _rows(page: Page) -> Locator:
    return page.locator("[data-row]")


def _wait_for_cells(page: Page, column: str, holds: Callable[[list[str]], bool]) -> None:
    """Wait until something holds for the values of a column in the rows on the screen."""
    headers = page.get_by_role("columnheader").all_inner_texts()
    at = [header.strip() for header in headers].index(column)
    read = f"""rows => rows.map(row => row.querySelectorAll("[role=cell]"))
      .filter(cells => cells.length === {len(headers)}).map(cells => cells[{at}].innerText)"""

    def is_so() -> bool:
        cells = _rows(page).evaluate_all(read)
        return bool(cells) and holds(cells)

    wait_until(f"the column {column} is as expected", is_so)


def test_the_table_is_filtered_sorted_and_the_url_has_the_view(web_app: WebApp) -> None:
    page = web_app.open("/runs")
    expect(page.get_by_text(f"{EXECUTIONS + RUNS} executions and pipeline runs")).to_be_visible()
    expect(_rows(page).first).to_contain_text("e36")
    expect(_rows(page).nth(1)).to_contain_text("e35")
    assert_accessible(page)

    page.keyboard.press("/")
    page.keyboard.type("metrics.accuracy > 0.91 params.optimizer = adam")
    page.keyboard.press("Enter")
    expect(page.get_by_text(re.compile(r"^\d+ match$"))).to_be_visible()
    _wait_for_cells(page, "optimizer", lambda cells: set(cells) == {"adam"})
    _wait_for_cells(page, "accuracy", lambda cells: min(map(float, cells)) > 0.91)

    page.get_by_role("button", name="accuracy", exact=True).click()
    header = page.get_by_role("columnheader", name="accuracy", exact=True)
    expect(header).to_have_attribute("aria-sort", "descending")
    _wait_for_cells(page, "accuracy", lambda cells: cells == sorted(cells, reverse=True))

    page.get_by_role("button", name="Columns").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Search columns").fill("user")
    dialog.get_by_label("User").check()
    dialog.get_by_role("button", name="Hide optimizer").click()
    assert_accessible(page)
    page.keyboard.press("Escape")
    expect(page.get_by_role("columnheader", name="User")).to_be_visible()
    expect(page.get_by_role("columnheader", name="optimizer")).to_have_count(0)

    before = _rows(page).all_inner_texts()
    page.reload()
    expect(page.get_by_role("columnheader", name="User")).to_be_visible()
    expect(_rows(page)).to_have_text(before, use_inner_text=True)
    expect(page.get_by_label("Filter", exact=True)).to_have_value(
        "metrics.accuracy > 0.91 params.optimizer = adam"
    )

    page.get_by_label("Filter", exact=True).fill("metrics.accuracy > high")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("high is not a number")
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_role("button", name="Failed").click()
    expect(page.get_by_text("4 match")).to_be_visible()
    web_app.assert_no_errors("400")


def test_groups_open_and_have_averages(web_app: WebApp) -> None:
    page = web_app.open("/runs")
    page.get_by_label("Group by").select_option("params.optimizer")
    group = page.get_by_role("button", name=re.compile(r"^adam\s*18$"))
    expect(group).to_have_attribute("aria-expanded", "false")
    expect(_rows(page)).to_have_count(3)  # adam, sgd, and runs without it
    expect(_rows(page).filter(has=group)).to_contain_text("⌀ 0.9")
    group.click()
    expect(page.get_by_role("table")).to_have_attribute("aria-rowcount", "22")
    _wait_for_cells(page, "optimizer", lambda cells: set(cells) == {"adam"})
    assert_accessible(page)
    page.reload()
    expect(page.get_by_role("table")).to_have_attribute("aria-rowcount", "22")
    page.get_by_label("Group by").select_option("tag")
    page.get_by_role("button", name=re.compile(r"^baseline")).click()
    row = _rows(page).filter(has_text="baseline").nth(1)
    row.get_by_role("link", name="baseline").click()
    expect(page.get_by_role("button", name="Do not filter by the tag baseline")).to_be_visible()
    web_app.assert_no_errors()


def test_rows_are_selected_tagged_and_compared_by_keyboard(web_app: WebApp) -> None:
    page = web_app.open("/runs")
    expect(_rows(page).first).to_be_visible()
    for key in ("j", "x", "j", "j", "x"):
        page.keyboard.press(key)
    expect(page.get_by_role("region", name="Selection")).to_contain_text("2 selected")
    expect(page.get_by_label("Select e34")).to_be_checked()
    page.get_by_role("button", name="Tag…").click()
    page.get_by_label("Tags").fill("seen twice")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_label("Filter", exact=True).fill("tag:twice")
    expect(page.get_by_text("2 match")).to_be_visible()
    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_role("dialog")).to_contain_text("Delete 2 executions")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_label("Filter", exact=True).fill("")
    expect(page.get_by_text("executions and pipeline runs")).to_be_visible()
    _rows(page).first.focus()
    page.keyboard.press("c")
    expect(page.get_by_role("heading", level=1)).to_have_text("Compare")
    parameters = page.get_by_role("region", name="Parameters", exact=True)
    expect(parameters.get_by_role("row", name=re.compile("^rate"))).to_contain_text("0.1")
    web_app.assert_no_errors()


def test_a_comparison_shows_differences_plots_and_code(web_app: WebApp) -> None:
    page = web_app.open(COMPARED)
    metrics = page.get_by_role("region", name="Metrics", exact=True)
    expect(metrics.get_by_role("row", name=re.compile("^accuracy"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^epochs"))).to_have_count(0)
    page.get_by_label("Show also what is equal").check()
    expect(page.get_by_role("row", name=re.compile("^epochs"))).to_have_count(1)
    page.get_by_label("Baseline").nth(1).check()
    expect(metrics.get_by_role("columnheader").nth(2)).to_contain_text("baseline")
    assert_accessible(page)

    page.get_by_role("tab", name="Metrics").click()
    expect(page.locator("canvas")).to_have_count(2)
    page.get_by_label("Logarithmic").check()
    page.get_by_label("Smoothing").fill("0.6")
    expect(page.get_by_role("region", name="accuracy", exact=True)).to_contain_text("e36")
    assert_accessible(page)
    page.reload()
    expect(page.locator("canvas")).to_have_count(2)
    expect(page.get_by_label("Smoothing")).to_have_value("0.6")
    expect(page.get_by_label("Baseline").nth(1)).to_be_checked()

    page.get_by_role("tab", name="Scatter").click()
    page.get_by_label("Across").select_option("params.layers")
    expect(page.get_by_role("img", name=re.compile("over layers"))).to_be_visible()
    assert_accessible(page)

    page.get_by_role("tab", name="Code").click()
    expect(page.locator(".cm-changedLine").first).to_contain_text("range(50)")
    assert_accessible(page)
    page.get_by_role("tab", name="Environment").click()
    expect(page.get_by_role("region", name="Packages").locator(".cm-changedText")).to_have_count(2)
    expect(page.get_by_text("variables.OMP_NUM_THREADS = 8")).to_be_visible()
    web_app.assert_no_errors()


def test_parallel_coordinates_filter_by_a_drag(web_app: WebApp) -> None:
    page = web_app.open(f"{COMPARED}&tab=parallel")
    axis = page.locator('[data-axis="metrics.accuracy"]')
    axis.hover()  # waits until the plot is where it stays
    box = axis.bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2
    page.mouse.move(middle, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(middle, box["y"] + box["height"] * 0.75, steps=5)
    page.mouse.up()
    expect(page.get_by_role("button", name="Keep these 2")).to_be_enabled()
    assert_accessible(page)
    page.reload()
    page.get_by_role("button", name="Keep these 2").click()
    expect(page.get_by_label("Baseline")).to_have_count(2)
    expect(page.get_by_role("button", name="Remove the ranges")).to_have_count(0)
    web_app.assert_no_errors()


def test_the_pages_fit_a_phone(web_app: WebApp) -> None:
    page = web_app.page
    size = page.viewport_size
    assert size is not None
    page.set_viewport_size(PHONE)
    for path in ("/runs?selected=%5B%22e36%22%2C%22e35%22%5D", COMPARED):
        web_app.open(path)
        expect(page.get_by_text("e36").first).to_be_visible()
        assert_fits(page)
        assert_accessible(page)
    for tab in ("Metrics", "Parallel coordinates", "Scatter", "Code", "Environment"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel")).to_be_visible()
        assert_fits(page)
    page.set_viewport_size(size)
    web_app.assert_no_errors()


def test_two_windows_follow_what_runs(web_app: WebApp) -> None:
    page = web_app.open("/runs")
    other = web_app.new_window("/runs?sort=started")
    expect(_rows(page).first).to_contain_text(f"e{EXECUTIONS}")
    page.keyboard.press("j")
    focused = page.locator("[data-row]:focus")
    expect(focused).to_contain_text(f"e{EXECUTIONS}")
    record_execution(Path(web_app.project.folder), EXECUTIONS)
    expect(_rows(page).first).to_contain_text(f"e{EXECUTIONS + 1}")
    expect(focused).to_contain_text(f"e{EXECUTIONS}")  # the next key acts on the same one
    expect(other.get_by_text(f"{EXECUTIONS + RUNS + 1} executions")).to_be_visible()
    page.get_by_role("button", name=f"Actions of e{EXECUTIONS + 1}").click()
    page.get_by_role("menuitem", name="Delete…").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(other.get_by_text(f"{EXECUTIONS + RUNS} executions")).to_be_visible()
    other.close()
    web_app.assert_no_errors()
