"""The web app's pages of notebooks and volumes, of a server that uses the cluster."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from tests.cluster.kube import Kube
from tests.cluster.operator import JUPYTER, operator  # noqa: F401 - a fixture
from tests.driver import Project
from tests.local.web_app import WebApp, assert_accessible, open_web_app, row_of

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

MISSING_IMAGE = "registry.invalid/none:1"
SLOW = 180_000
"""Milliseconds for the start of a container."""


@pytest.fixture
def web_app(kube: Kube, browser: BrowserContext, tmp_path: Path) -> Iterator[WebApp]:
    project = Project(tmp_path, KUBECONFIG=kube.kubeconfig)
    options = ("--on-cluster", "--namespace", kube.namespace, "--apps-port", "0")
    with open_web_app(browser, project, *options) as app:
        yield app


def create(page: Page, name: str, image: str | None = None) -> None:
    page.get_by_role("link", name="New notebook").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("CPU cores", exact=True).fill("0.1")
    page.get_by_label("Memory in GiB", exact=True).fill("0.2")
    if image is not None:
        page.get_by_role("checkbox", name="Custom image").check()
        page.get_by_role("textbox", name="Custom image").fill(image)
        page.get_by_text("Volumes", exact=True).last.click()
        page.get_by_role("button", name="Remove workspace").click()
    page.get_by_text("Configurations", exact=True).click()
    expect(page.get_by_text("There are no configurations in this namespace.")).to_be_visible()
    assert_accessible(page)
    page.get_by_role("button", name="Create").dblclick()
    expect(row_of(page, name)).to_be_visible()


def test_notebooks_of_the_cluster(web_app: WebApp, kube: Kube) -> None:
    page = web_app.open("/notebooks")
    expect(page.get_by_text("There are no notebooks yet")).to_be_visible()
    create(page, "mine")
    create(page, "broken", MISSING_IMAGE)
    assert len(kube.get("notebooks")["items"]) == 2

    row = row_of(page, "broken")
    expect(row.get_by_text("problem", exact=True)).to_be_visible(timeout=SLOW)
    expect(row).to_contain_text(MISSING_IMAGE)
    expect(row_of(page, "mine").get_by_text("running", exact=True)).to_be_visible(timeout=SLOW)
    expect(row_of(page, "mine")).to_contain_text(JUPYTER.rpartition("/")[2])
    expect(row_of(page, "mine")).to_contain_text("0.1 CPU · 0.2 GiB")
    expect(row_of(page, "mine").get_by_role("link", name="Connect")).to_be_in_viewport(ratio=1)
    assert_accessible(page)
    words = re.findall(r"\b(?:Pod|PVC|CRD|StatefulSet)s?\b", page.inner_text("main"))
    assert not words, words

    tab = page.context.new_page()
    tab.goto(f"{web_app.server.address}/notebook/{kube.namespace}/broken/")
    expect(tab.get_by_role("heading", level=1)).to_contain_text("broken")
    expect(tab.get_by_text(MISSING_IMAGE)).to_be_visible()
    tab.close()

    page.goto(f"{web_app.server.address}/notebooks/{kube.namespace}/mine?tab=logs")
    expect(page.get_by_role("log")).to_contain_text("Jupyter Server")
    page.get_by_role("tab", name="Conditions").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("Ready")
    page.get_by_role("tab", name="Overview").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("mine-workspace")

    other = web_app.new_window("/volumes")
    expect(row_of(other, "mine-workspace").get_by_text("ready", exact=True)).to_be_visible()
    row_of(other, "mine-workspace").get_by_role("button", name="Actions of mine-workspace").click()
    delete = other.get_by_role("menuitem", name="Delete")
    expect(delete).to_be_disabled()
    expect(delete).to_contain_text("in use: mine")
    other.keyboard.press("Escape")

    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("stopped", exact=True)).to_be_visible(timeout=SLOW)
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete the notebook mine?")
    expect(dialog).to_contain_text("mine-workspace")
    dialog.get_by_role("button", name="Delete").click()
    expect(row_of(page, "mine")).to_have_count(0)
    expect(row_of(other, "mine-workspace")).to_be_visible()
    other.close()
    assert "mine-workspace" in kube("get", "persistentvolumeclaims", "--output=name")
    web_app.assert_no_errors()
