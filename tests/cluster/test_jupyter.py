"""Our Jupyter on a real cluster: under its prefix or without, with a volume as its home."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from tests.browser import launch_browser
from tests.cluster.jupyter import HOME, jupyter_notebook, open_jupyter, server, wait_until_reachable  # noqa: F401 - server is a fixture
from tests.cluster.kube import Kube, pod
from tests.cluster.operator import JUPYTER, claim, operator, volume  # noqa: F401 - operator is a fixture
from tests.cluster.test_viewers import viewer
from tests.local.server import Server
from tests.wait import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

REWRITE = "notebooks.kubeflow.org/http-rewrite-uri"

WHEEL = """
import zipfile
about = "Metadata-Version: 2.1\\nName: kept\\nVersion: 1\\n"
with zipfile.ZipFile("kept-1-py3-none-any.whl", "w") as file:
    file.writestr("kept.py", "print('here')")
    file.writestr("kept-1.dist-info/METADATA", about)
    file.writestr("kept-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
    file.writestr("kept-1.dist-info/RECORD", "")
%pip install -q --no-index ./kept-1-py3-none-any.whl
"""
PIPELINE = """
from kfp import compiler, dsl

@dsl.component
def double(number: int) -> int:
    return 2 * number

@dsl.pipeline
def doubled(number: int = 21):
    double(number=number)

compiler.Compiler().compile(doubled, "doubled.yaml")
!clew init && clew exec -- sort -o sorted.yaml doubled.yaml && clew trace sorted.yaml
"""


@pytest.fixture
def of_root(kube: Kube, nodes: list[str]) -> Iterator[str]:
    """A claim whose volume is root's alone until the kubelet gives it to the Pod's group."""
    with volume(kube, kube.namespace, "home", node=nodes[0]):
        kube.apply(claim("home", storageClassName="", volumeName=kube.namespace))
        yield "home"


def test_its_home_is_a_volume_and_keeps_what_was_installed(
    kube: Kube,
    server: Server,  # noqa: F811
    of_root: str,
    tmp_path: Path,
) -> None:
    kube.apply(jupyter_notebook(home=of_root))
    with open_jupyter(server, kube) as first, first.kernel() as run:
        assert first.page.get(f"{first.base}lab").status_code == 200
        assert run("import os; print(os.getuid(), os.getcwd())") == f"1000 {HOME}\n"
        run(WHEEL)
        assert "sort" in run(PIPELINE)
        kube.apply(viewer(of_root))
        files = f"/pvcviewer/{kube.namespace}/files/files/"
        wait_until_reachable(kube, "pvcviewer/files", first.page, files)
        assert first.page.put(f"{files}new.txt", content=b"by the viewer").is_success
        assert run("print(open('new.txt').read())") == "by the viewer\n"
    before = _uid(kube)
    kube("annotate", "notebook/first", "notebooks.opendatahub.io/notebook-restart=true")
    wait_until("another Pod", lambda: _uid(kube) not in ("", before))
    with open_jupyter(server, kube) as first, first.kernel() as run:
        assert run("import kept") == "here\n"
        names = {each["name"] for each in first("GET", "contents")["content"]}
        assert names >= {"doubled.yaml", "sorted.yaml"}
        with launch_browser() as browser, browser.new_page() as page:
            page.goto(f"{server.address}/?token={server.token}")
            page.goto(f"{server.address}{first.base}lab")
            expect(page.locator("body")).to_contain_text("sorted.yaml")


def _uid(kube: Kube) -> str:
    return kube("get", "pod", "first-0", "--output=jsonpath={.metadata.uid}", ok=False)


def test_an_image_that_ignores_its_prefix_is_asked_for_another(
    kube: Kube,
    server: Server,  # noqa: F811
) -> None:
    """Its pages, its API and its kernels, by HTTP and WebSocket."""
    ignores = {"args": ["env", "--unset=NB_PREFIX", "jupyter", "lab", "--IdentityProvider.token="]}
    kube.apply(jupyter_notebook(container=ignores, annotations={REWRITE: "/"}))
    with open_jupyter(server, kube) as first, first.kernel() as run:
        assert run("import os; print(os.environ.get('NB_PREFIX'))") == "None\n"
        assert first.page.get(f"{first.base}lab").status_code == 200


ASK = """
import urllib.error, urllib.request
def status(path):
    try:
        return urllib.request.urlopen("http://localhost:8888" + path).status
    except urllib.error.HTTPError as error:
        return error.code
print(status("/api"), status("/api/contents"))
"""


def test_without_a_prefix_it_serves_the_root_and_asks_for_its_token(kube: Kube) -> None:
    probe = {"tcpSocket": {"port": 8888}, "periodSeconds": 1}
    kube.apply(pod("alone", image=JUPYTER, readinessProbe=probe))
    kube.wait_for("pod/alone", "condition=Ready")
    assert kube("exec", "alone", "--", "python3", "-c", ASK) == "200 403\n"
    wait_until("it prints the token", lambda: "/lab?token=" in kube("logs", "alone"))
