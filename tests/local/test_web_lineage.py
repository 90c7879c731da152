"""The lineage page of the web app: a graph that grows, its table, its exports, and its address."""

import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.driver import Project
from tests.local.web_app import PHONE, WebApp, assert_accessible, assert_fits
from tests.unit.prov.cluster.cluster_builder import ClusterBuilder

TRAINING = Path(__file__).parents[2] / "examples/training"
LOOP = (
    "for i in 1 2 3 4 5 6 7; do head -n $i data/raw.csv > part-$i.csv; done; cat part-*.csv > all"
)


@pytest.fixture(scope="module")
def web_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """e1 prepared and split the data of the training example, e2 used a copy that nobody saw being
    made, e3 is a loop. Then a cluster was observed."""
    project = Project(tmp_path_factory.mktemp("lineage"))
    for name in ("prepare.py", "split.py", "data"):
        source = TRAINING / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, project / name)
    project.sh(
        "python3 prepare.py data/raw.csv data/clean.csv;"
        " python3 split.py data/clean.csv data/train.csv data/test.csv;"
        " wc -l data/test.csv > metrics.json"
    )
    shutil.copy(project / "data/train.csv", project / "copy.csv")
    (project / "data/test.csv").write_text("changed\n")
    project.sh("cat copy.csv data/test.csv | sort > sorted.csv")
    project.sh(LOOP)
    cluster = ClusterBuilder()
    cluster.claim("team", "data", "pv-1")
    first = cluster.pod("team", "prepare", claims=["data"])
    first.write("data/pumps", "rows", stored=False).end()
    second = cluster.pod("team", "train", image="train", claims=["data"])
    second.read("data/pumps", "rows").gap("reads", "the layer over its volume was restarted")
    second.write("data/scores", "0.9", stored=False).end()
    with project.opened() as opened:
        cluster.fold(opened.graph)
    return project


def test_from_a_metric_to_the_rows_of_its_data(web_app: WebApp) -> None:
    """Search for the metrics, follow them up, and see the rows. A reload shows the same."""
    page = web_app.open("/lineage")
    assert_accessible(page)
    search = page.get_by_role("combobox").first
    search.fill("metrics.json")
    page.get_by_role("option", name=re.compile("metrics.json")).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Lineage of metrics.json")
    page.get_by_role("button", name="What produced this").click()
    expect(page).to_have_url(re.compile("direction=up"))
    panel = page.get_by_role("region", name="Selected")
    panel.get_by_role("button", name=re.compile("^wc")).first.click()
    expect(page).to_have_url(re.compile("node="))
    page.get_by_label("Steps").select_option("all")
    raw = page.locator("button[data-node*='raw.csv@']")
    expect(raw).to_be_attached()
    page.get_by_role("searchbox", name="Find in the graph").fill("file raw.csv")
    page.keyboard.press("Enter")
    table = panel.get_by_role("table")
    expect(table.get_by_role("columnheader").first).to_be_visible()
    first = (web_app.project / "data/raw.csv").read_text().splitlines()[1].split(",")[0]
    expect(table.get_by_role("cell").first).to_have_text(first)
    address = page.url
    page.reload()
    expect(page.get_by_role("region", name="Selected")).to_contain_text("raw.csv")
    expect(table.get_by_role("cell").first).to_have_text(first)
    assert page.url == address
    assert_accessible(page)
    web_app.assert_no_errors()


def test_expand_group_path_and_exports(web_app: WebApp) -> None:
    page = web_app.open("/lineage?target=e3:all&direction=up")
    group = page.get_by_role("button", name=re.compile("Group of Processes"))
    expect(group).to_have_count(1)
    group.focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Show all 7").click()
    expect(page.get_by_role("button", name=re.compile("^Process, head"))).to_have_count(7)
    page.get_by_role("button", name=re.compile("^Open group of Processes")).press("Enter")
    page.get_by_role("button", name="Collapse the group").click()
    expect(group).to_have_count(1)
    # One step on from the raw data, by the keyboard.
    page.goto(f"{web_app.server.address}/lineage?target=e1:data/raw.csv&direction=up")
    raw = page.locator("button[data-node*='raw.csv@']")
    raw.focus()
    page.keyboard.press("]")
    prepare = page.get_by_role("button", name=re.compile("^Process, python3 prepare.py"))
    expect(prepare).to_be_visible()
    expect(page).to_have_url(re.compile("after="))
    # The path to a copy that nobody saw being made goes through an inferred link.
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Path to…").click()
    page.get_by_role("combobox").first.fill("sorted.csv")
    page.get_by_role("option", name=re.compile("sorted.csv")).first.click()
    expect(page.get_by_text(re.compile(r"A shortest path has \d+ steps"))).to_be_visible()
    expect(page.locator(".react-flow__edge.dashed.on")).not_to_have_count(0)
    page.locator("button[data-node*='copy.csv@']").click()
    panel = page.get_by_role("region", name="Selected")
    expect(panel).to_contain_text("Inferred, not observed")
    files = {}
    for label in ("PROV-JSON", "PROV-N", "SVG of the graph"):
        page.get_by_role("button", name="Export").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=label).click()
        files[label] = Path(download.value.path()).read_text()
    prov = json.loads(files["PROV-JSON"])
    assert any(one.get("clew:observed") is False for one in prov["wasDerivedFrom"].values())
    assert files["PROV-N"].startswith("document") and "wasGeneratedBy(" in files["PROV-N"]
    assert ET.fromstring(files["SVG of the graph"]).tag.endswith("svg")
    web_app.assert_no_errors()


def test_table_filters_differences_and_plan(web_app: WebApp) -> None:
    page = web_app.open("/lineage?target=e2:sorted.csv&direction=up&view=table")
    rows = page.get_by_role("table", name="Lineage").get_by_role("row")
    expect(rows).not_to_have_count(1)
    page.get_by_role("searchbox", name="Filter the table").fill("changed outside")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("test.csv")
    page.get_by_role("button", name="Size").click()
    rows.nth(1).click()
    panel = page.get_by_role("region", name="Selected")
    expect(panel).to_contain_text("Who changed it was not observed")
    page.get_by_role("button", name="What differs…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("region", name="Differences of the content")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Reproduce…").click()
    expect(dialog).to_contain_text("clew recreate")
    expect(dialog.get_by_role("link", name=re.compile("to repeat it"))).to_be_visible()
    address = page.url
    page.reload()
    expect(page.get_by_role("dialog")).to_contain_text("clew recreate")
    assert page.url == address
    page.keyboard.press("Escape")
    assert_accessible(page)
    page.get_by_role("searchbox", name="Filter the table").fill("")
    page.get_by_role("button", name=re.compile("^Processes")).click()
    expect(page.get_by_role("button", name=re.compile("Clear filters"))).to_be_visible()
    expect(page.get_by_role("cell", name="Process")).to_have_count(0)
    size = page.viewport_size
    page.set_viewport_size(PHONE)
    assert_fits(page)
    page.get_by_role("button", name="Graph").click()
    expect(page.locator("button[data-node]").first).to_be_attached()
    assert_fits(page)
    assert size is not None
    page.set_viewport_size(size)
    web_app.assert_no_errors()


def test_the_palette_finds_files_and_opens_their_lineage(web_app: WebApp) -> None:
    page = web_app.open("/")
    page.keyboard.press("Control+k")
    page.get_by_role("dialog", name="Search").get_by_role("combobox").fill("clean csv")
    page.get_by_role("option", name=re.compile("clean.csv")).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Lineage of clean.csv")
    web_app.assert_no_errors()


def test_a_pod_is_found_described_and_reproduced(web_app: WebApp) -> None:
    """From its name to the plan of a reproduction. Nothing offers to repeat it as a command."""
    page = web_app.open("/lineage")
    page.get_by_role("combobox").first.fill("team/train")
    page.get_by_role("option", name=re.compile("Pod")).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Lineage of team/train")
    panel = page.get_by_role("region", name="Selected")
    expect(panel.get_by_role("button", name="Reproduce…")).to_be_visible()
    for fact in ("team/train", "train:1", "one", "alice"):
        expect(panel.get_by_role("definition").filter(has_text=fact).first).to_be_visible()
    expect(panel).to_contain_text("the layer over its volume was restarted")
    expect(panel.get_by_role("link", name=re.compile("repeat"))).to_have_count(0)
    panel.get_by_text("Commands", exact=True).click()
    expect(panel).to_contain_text("clew reproduce")
    expect(panel).not_to_contain_text("clew repeat")
    assert_accessible(page)
    page.goto(f"{web_app.server.address}/lineage?target=pvc://team/data/scores&direction=up")
    page.locator("button[data-node*='scores@']").click()
    panel.get_by_role("button", name="Reproduce…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("listitem").first).to_contain_text("team/train")
    expect(dialog).to_contain_text("--here")
    assert_accessible(page)
    web_app.assert_no_errors()


def test_a_cluster_as_it_was(web_app: WebApp) -> None:
    target = "target=pvc://team/data&direction=up"
    page = web_app.open(f"/lineage?{target}")
    expect(page.get_by_role("button", name="team/train").first).to_be_attached()
    page.get_by_text("Time", exact=True).click()
    page.get_by_label("As it was at").fill("2023-11-14T22:13:27")
    expect(page).to_have_url(re.compile("as_of="))
    expect(page.get_by_role("button", name="team/train")).to_have_count(0)
    address = page.url
    page.reload()
    expect(page.get_by_role("button", name="team/train")).to_have_count(0)
    assert page.url == address
    page.get_by_role("button", name=re.compile("Clear filters")).click()
    expect(page.get_by_role("button", name="team/train").first).to_be_attached()
    web_app.assert_no_errors()
