"""The journeys of `tests/local/test_web_journey_*.py` with a server that uses the cluster.

All share one server, one namespace and one browser: most of their time passes in starts.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, expect
from tests.cluster.kube import Kube
from tests.cluster.operator import operator  # noqa: F401 - a fixture
from tests.driver import Project
from tests.local.test_web_journey_notebook import browse, open_curves, row_of, run_in_kernel
from tests.local.test_web_journey_taxi import add_trips, test_upload_run_compare_and_schedule
from tests.local.test_web_journey_trace import (
    record_training,
    test_from_a_metric_to_its_rows_and_the_verdict,
)
from tests.local.web_app import WebApp, open_web_app

__all__ = [
    "test_from_a_metric_to_its_rows_and_the_verdict",
    "test_upload_run_compare_and_schedule",
]
"""Run here with the fixture below."""
pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

SLOW = 180_000
"""Milliseconds for the start of a container."""
CODE = """
from tensorboardX import SummaryWriter
writer = SummaryWriter("logs")
for step in range(5):
    writer.add_scalar("loss", 1 / (step + 1), step)
writer.close()
print("written", 6 * 7)
"""


@pytest.fixture(scope="module")
def web_app(
    cluster: Kube,
    spaces: str,
    browser: BrowserContext,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[WebApp]:
    project = Project(tmp_path_factory.mktemp("journeys"), KUBECONFIG=cluster.kubeconfig)
    add_trips(project)
    record_training(project)
    namespace = f"{spaces}-journeys"
    cluster("create", "namespace", namespace)
    options = ("--on-cluster", "--namespace", namespace, "--apps-port", "0", "--runs", "1")
    with open_web_app(browser, project, *options) as app:
        yield app
    cluster("delete", "namespace", namespace, "--wait=false")


def test_from_a_notebook_to_its_curves_and_files(web_app: WebApp) -> None:
    """In two windows: what one creates, the other shows."""
    page = web_app.open("/notebooks")
    other = web_app.new_window("/notebooks")
    page.get_by_role("link", name="New notebook").click()
    page.get_by_label("CPU cores", exact=True).fill("0.1")
    page.get_by_label("Memory in GiB", exact=True).fill("0.5")
    page.get_by_role("button", name="Create").click()
    for window in (other, page):
        state = row_of(window, "notebook-1").get_by_text("running", exact=True)
        expect(state).to_be_visible(timeout=SLOW)
    lab = run_in_kernel(web_app, "notebook-1", CODE, "written 42")
    board = open_curves(web_app, "pvc://notebook-1-workspace/logs")
    files = browse(web_app, "notebook-1-workspace")
    page = web_app.open("/notebooks")
    page.get_by_role("button", name="Stop notebook-1").click()
    expect(row_of(other, "notebook-1").get_by_text("stopped", exact=True)).to_be_visible()
    for tab in (lab, board, files, other):
        tab.close()
    web_app.assert_no_errors()
