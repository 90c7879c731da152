"""Whatever stands in records, no page runs it as code, and every page keeps its layout.

Records, names and files come from others: a colleague's bundle, an uploaded pipeline.
"""

import json

import httpx2
import pytest
from playwright.sync_api import Page, expect
from tests.driver import Project
from tests.local.programs.compiling import HERE, run_script
from tests.local.web_app import PHONE, WebApp, assert_accessible, assert_fits

MARKUP = "<img src=x onerror=hacked()>\"'><script>hacked()</script>{{hacked()}}${hacked()}"
TURNED = "\u202egnp.exe\u2066\u200b"
LONG = "w" * 700
NAME = f"{MARKUP} {TURNED} {LONG}"
TERMINAL = "\x1b]8;;javascript:hacked()\x07click\x1b]8;;\x07\x1b[31m<script>hacked()</script>"
WATCH = """
window.attacks = [];
for (const name of ["hacked", "alert", "confirm", "prompt"]) {
  window[name] = (...given) => window.attacks.push([name, given]);
}
"""
PROGRAM = """\
import json, sys
json.dump({sys.argv[1]: 0.5}, open("metrics.json", "w"))
print(sys.argv[2])
sys.exit(sys.argv[2])
"""


@pytest.fixture(scope="module")
def web_project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """With e1 and e2, which read, print and write hostile names and texts."""
    project = Project(tmp_path_factory.mktemp("hostile"))
    project.write("program.py", PROGRAM)
    file = f"{MARKUP.replace('/', '|')}{TURNED}.csv"
    project.write(file, f"{MARKUP},{TURNED}\n1,2\n")
    project.write("page.html", f"<body onload=hacked()>{MARKUP}")
    run = 'cat *.csv page.html > out.html; exec python3 program.py "$1" "$2"'
    words = ("sh", "-c", run, "sh", MARKUP, TERMINAL, "x" * 10_000)
    for number in (1, 2):
        project.exec(*words, options=("--name", f"<img src=x onerror=hacked()>{number}"))
    project("note", "e1", MARKUP)
    project("tag", "e1", "<svg/onload=hacked()>")
    return project


@pytest.fixture(scope="module")
def pipeline(web_app: WebApp) -> str:
    """The id of a pipeline whose names are hostile, and that has a schedule and a run."""
    spec = web_app.project / "measuring.yaml"
    run_script(HERE / "measuring.py", spec)
    web_app.page.context.add_init_script(WATCH)
    kfp = "/apis/v2beta1"
    with web_app.server.client() as client:

        def post(path: str, **body: object) -> dict[str, str]:
            answer = client.post(path, json=body)
            assert answer.status_code < 300, answer.text
            found: dict[str, str] = answer.json()
            return found

        named = {"display_name": NAME[:250], "description": MARKUP}
        home = post(f"{kfp}/experiments", **named)["experiment_id"]
        given = client.post(
            f"{kfp}/pipelines/upload",
            params={"name": "measuring", "display_name": NAME[:250], "description": MARKUP},
            files={"uploadfile": ("measuring.yaml", spec.read_bytes())},
        )
        assert given.status_code == 200, given.text
        id_ = given.json()["pipeline_id"]
        version = {"pipeline_id": id_}
        run = {"experiment_id": home, "pipeline_version_reference": version, **named}
        post(f"{kfp}/runs", **run)
        trigger = {"periodic_schedule": {"interval_second": "86400"}}
        more = {"mode": "DISABLE", "max_concurrency": "1", "trigger": trigger}
        post(f"{kfp}/recurringruns", **run, **more)
        post("/api/v1/tokens", name=MARKUP[:100], days=1)
        post("/api/v1/remotes", name="evil", url=f"/{MARKUP}{LONG}")
        _send_execution(client)
        _refuse_zero_bytes(client)
    return str(id_)


def _send_execution(client: httpx2.Client) -> None:
    """Send e3, with a name and an agent that no command of ours would record."""
    uid, at = "a" * 32, 1_800_000_000_000_000_000
    about = {"execution": uid, "activity": uid}
    git = {"commit": "c" * 40, "dirty": True, "branch": NAME}
    begun = {"kind": "execution", "agent": NAME, "command": [NAME, MARKUP], "name": NAME}
    events = [
        {"event": "started", "n": 1, "at": at, "cwd": f"/{NAME}", "facets": {"git": git}} | begun,
        {"event": "ended", "n": 2, "at": at + 1, "status": 1},
    ]
    lines = "".join(f"{json.dumps(event | about)}\n" for event in events)
    headers = {"Content-Type": "application/x-ndjson"}
    answer = client.post("/api/v1/events", content=lines, headers=headers)
    assert answer.status_code == 200, answer.text


def _refuse_zero_bytes(client: httpx2.Client) -> None:
    for path, body in (
        ("/api/v1/tokens", {"name": "a\0b"}),
        ("/api/v1/remotes", {"name": "b", "url": "/a\0b"}),
        ("/apis/v2beta1/experiments", {"display_name": "a\0b"}),
        ("/api/v1/executions/e1/tags", {"add": ["a\0b"]}),
    ):
        assert client.post(path, json=body).status_code in (400, 422), path


PAGES = (
    *("/", "/runs", "/compare?id=%5B%22e1%22%2C%22e2%22%5D", "/lineage", "/lineage?target=e1"),
    *("/runs/e1", "/runs/e1?tab=output", "/runs/e3"),
    *("/pipelines", "/pipelines/{pipeline}", "/experiments", "/schedules"),
    *("/settings/tokens", "/settings/remotes", "/settings/about"),
)


@pytest.mark.parametrize("path", PAGES)
def test_a_page_runs_nothing_and_keeps_its_layout(
    web_app: WebApp, pipeline: str, path: str
) -> None:
    page = web_app.open(path.format(pipeline=pipeline))
    _settle(page)
    assert page.evaluate("window.attacks") == []
    assert page.locator("main script, main img[src=x]").count() == 0
    assert_fits(page)
    wide = page.viewport_size
    page.set_viewport_size(PHONE)
    assert_fits(page)
    assert wide is not None
    page.set_viewport_size(wide)
    web_app.assert_no_errors()


def test_the_search_runs_nothing(web_app: WebApp, pipeline: str) -> None:
    page = web_app.open("/")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("hacked")
    expect(page.get_by_role("option").filter(has_text="hacked").first).to_be_visible()
    assert page.evaluate("window.attacks") == []
    assert_accessible(page)
    assert_fits(page)
    web_app.assert_no_errors()


def _settle(page: Page) -> None:
    """Wait until nothing is loading."""
    expect(page.get_by_role("status", name="Loading")).to_have_count(0)
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def test_what_a_program_printed_is_shown_as_text(web_app: WebApp, pipeline: str) -> None:
    """Sequences of a terminal become no link, and markup no element."""
    page = web_app.open("/runs/e1?tab=output")
    shown = page.get_by_role("log").get_by_text("<script>hacked()</script>")
    expect(shown.first).to_be_visible()
    assert page.get_by_role("log").locator("a, script, img").count() == 0
    assert page.evaluate("window.attacks") == []
    web_app.assert_no_errors()
