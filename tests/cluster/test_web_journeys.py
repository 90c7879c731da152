"""The journeys of `tests/local/test_web_journey_*.py` through the Service of a deployed server.

All share one installation, one namespace of users and one browser: most of their time passes in
starts. The Service is reached by its address, so the pages come over plain HTTP from another host.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect
from tests.cluster.deployment import install, move, render, server_token
from tests.cluster.kube import Kube
from tests.cluster.location import require_local_cluster
from tests.cluster.pipeline_lake import lake_for_pods, pin_image
from tests.driver import Project
from tests.local.server import ServerAddress
from tests.local.test_web_journey_notebook import browse, open_curves, row_of, run_in_kernel
from tests.local.test_web_journey_taxi import add_trips, use_the_pipeline
from tests.local.test_web_journey_trace import (
    record_training,
    test_from_a_metric_to_its_rows_and_the_verdict,
)
from tests.local.web_app import WebApp, assert_accessible, log_in
from tools.cluster.lifecycle import add_image

__all__ = ["test_from_a_metric_to_its_rows_and_the_verdict"]
"""It runs here, with the fixture below."""
pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("web journeys")]

SLOW = 180_000
"""Milliseconds for the start of a container."""
TAXI = "docker.io/clew/taxi"
CODE = """
from tensorboardX import SummaryWriter
writer = SummaryWriter("logs")
for step in range(5):
    writer.add_scalar("loss", 1 / (step + 1), step)
writer.close()
print("written", 6 * 7)
"""


@pytest.fixture(scope="module")
def space(cluster: Kube, spaces: str) -> Iterator[Kube]:
    """The namespace of the users."""
    require_local_cluster(cluster)
    namespace = f"{spaces}-users"
    cluster("create", "namespace", namespace)
    space = Kube(cluster.kubeconfig, namespace)
    space("create", "quota", "fair", "--hard=requests.storage=100Gi")
    yield space
    cluster("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def server(
    cluster: Kube, space: Kube, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerAddress]:
    """By its Service. Pipelines are Pods of the users' namespace."""
    namespace = space.namespace.replace("users", "clew")
    found = move(render(cluster, "overlays/repeats"), namespace, users=space.namespace)
    with lake_for_pods(tmp_path_factory.mktemp("lake"), cluster) as lake:
        lake.admit(space)
        with install(cluster, found, namespace) as clew:
            lake.admit(clew, CLEW_ARTIFACTS="s3://lake/runs")
            for name in ("clew-server", "clew-operator"):
                clew("rollout", "status", f"deployment/{name}", "--timeout=180s")
            host = clew.get("service", "clew-server")["spec"]["clusterIP"]
            yield ServerAddress(f"http://{host}", server_token(clew), f"http://{host}:8101")


@pytest.fixture(scope="module")
def taxi_image(cluster: Kube) -> Iterator[str]:
    """What the tasks run in, with its digest: only such tasks are reused."""
    example = Path(__file__).parents[2] / "examples" / "taxi"
    add_image(Path(cluster.kubeconfig).parent, f"{TAXI}:1", example / "Containerfile")
    with pin_image(cluster, f"{TAXI}:1", TAXI) as name:
        yield name


@pytest.fixture(scope="module")
def web_app(
    server: ServerAddress,
    taxi_image: str,
    browser: BrowserContext,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[WebApp]:
    """A user records on this machine and sends the records to the server."""
    project = Project(tmp_path_factory.mktemp("journeys"), **server.variables)
    add_trips(project)
    pipeline = (project / "taxi.yaml").read_text()
    for here, there in (("trips.csv", "/data/trips.csv"), (f"{TAXI}:1", taxi_image)):
        assert here in pipeline
        pipeline = pipeline.replace(here, there)
    project.write("taxi.yaml", pipeline)
    record_training(project)
    app = log_in(browser, project, server)
    yield app
    app.page.close()


def test_a_token_for_a_user_is_copied(web_app: WebApp) -> None:
    page = web_app.open("/settings/tokens")
    assert not page.evaluate("isSecureContext"), "the browser would offer a clipboard"
    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name").fill("CI")
    page.get_by_label("Kubernetes user").fill("ann")
    assert_accessible(page)
    page.get_by_role("button", name="Create").click()
    token = page.get_by_test_id("token").inner_text()
    page.get_by_role("button", name="Copy the token").click()
    expect(page.get_by_role("button", name="Copied")).to_be_focused()
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("row").filter(has_text="CI")).to_contain_text("for ann")
    with web_app.server.client() as client:
        [listed] = client.get("/api/v1/tokens").json()["tokens"]
    assert listed["kubernetes_user"] == "ann"

    page.get_by_role("button", name="New token").click()
    page.get_by_label("Name").focus()
    page.keyboard.press("Control+V")
    expect(page.get_by_label("Name")).to_have_value(token)
    web_app.assert_no_errors()


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
    board = open_curves(web_app, "pvc://notebook-1-workspace/logs", timeout=SLOW)
    files = browse(web_app, "notebook-1-workspace", timeout=SLOW)
    page = web_app.open("/notebooks")
    page.get_by_role("button", name="Stop notebook-1").click()
    expect(row_of(other, "notebook-1").get_by_text("stopped", exact=True)).to_be_visible()
    home = web_app.open("/")
    quota = home.locator("section").filter(has=home.get_by_role("heading", name="Quota of"))
    expect(quota).to_contain_text("of 100Gi")
    for tab in (lab, board, files, other):
        tab.close()
    web_app.assert_no_errors()


def test_upload_run_compare_and_schedule(web_app: WebApp) -> None:
    """Each task is a Pod. The command line then asks the same server where the scores are from."""
    run = use_the_pipeline(web_app)
    traced = web_app.project.json("trace", f"{run}/evaluate:scores")
    names = {node.get("name") for node in traced["nodes"] if node["kind"] == "process"}
    assert {"fetch", "fetch-2", "train", "predict", "true-values", "evaluate"} <= names
