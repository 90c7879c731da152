"""A user traces a metric to the rows that it was made from, repeats the training, and sees why the
result is another one."""

import re

import pytest
from playwright.sync_api import expect
from tests.driver import Project
from tests.local.web_app import WebApp

PREPARE = """
rows = [line for line in open("tips.csv") if not line.startswith("bad")]
open("clean.csv", "w").write("".join(rows))
"""
TRAIN = """
import json, random
rows = open("clean.csv").read().splitlines()[1:]
values = [float(row.split(",")[1]) for row in rows]
accuracy = sum(values) / len(values) + random.random() / 1000
json.dump({"accuracy": accuracy}, open("metrics.json", "w"))
"""


@pytest.fixture(scope="module")
def web_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("trace"))
    record_training(project)
    return project


def record_training(project: Project) -> None:
    """Executions `prepare` and `train`, whose metric is partly random."""
    project.write("tips.csv", "trip,tip\nfirst-trip,0.5\nbad,9\nsecond-trip,0.7\n")
    project.write("prepare.py", PREPARE)
    project.write("train.py", TRAIN)
    project("exec", "--name", "prepare", "--", "python3", "prepare.py")
    project("exec", "--name", "train", "--", "python3", "train.py")


def test_from_a_metric_to_its_rows_and_the_verdict(web_app: WebApp) -> None:
    page = web_app.open("/runs")
    page.get_by_role("table").get_by_text("train", exact=True).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("train")
    page.get_by_role("link", name="metrics.json").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("The text of the file")).to_contain_text("accuracy")
    dialog.get_by_role("link", name="Where does it come from?").click()
    page.wait_for_url(re.compile("/lineage"))
    graph = page.locator(".graph")
    made_from = graph.get_by_role("button", name=re.compile("clean.csv")).first
    expect(made_from).to_be_visible()
    made_from.click()
    panel = page.get_by_label("Selected", exact=True)
    expect(panel).to_contain_text("second-trip")
    expect(panel).not_to_contain_text("bad")
    page.goto(f"{web_app.server.address}/runs/train")
    page.get_by_role("button", name="Repeat", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Repeat", exact=True).click()
    verdict = page.get_by_role("tabpanel")
    expect(verdict.get_by_text("Some outputs differ.")).to_be_visible()
    expect(verdict.get_by_label("Cause", exact=True)).to_contain_text("randomness")
    expect(verdict).to_contain_text("metrics.json")
    web_app.assert_no_errors()
