"""`clew open`: pages that only the user can read, in the user's browser."""

import stat
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.driver import Project
from tests.local.server import run_server

BROWSER = "echo %s"


@pytest.fixture
def clew(tmp_path: Path) -> Project:
    clew = Project(tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        clew.environment.pop(name, None)
    return clew


def test_without_a_display_the_private_file_of_a_lineage_is_printed(clew: Project) -> None:
    clew.sh("echo a > made.txt")
    page = Path(clew("open", "made.txt").stdout.strip())
    assert "Where made.txt came from" in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    assert clew.json("open", "made.txt") == {"page": str(page), "opened": False}
    assert clew("trace", "made.txt", "--web").stdout.strip() == str(page)
    assert clew("show", "e1", "--web").stdout == clew("open", "e1").stdout
    clew.environment["BROWSER"] = BROWSER
    ran = clew("open", "made.txt")
    assert (ran.stdout, ran.stderr) == (f"{page.as_uri()}\n", "opened in the browser\n")
    assert clew("open", "made.txt", "--print").stdout.strip() == str(page)


def test_the_token_of_a_server_is_not_on_the_command_line_of_the_browser(clew: Project) -> None:
    assert clew.error("open", status=5)[0] == "not-found"
    clew.environment |= {"CLEW_SERVER": "http://127.0.0.1:8100", "CLEW_TOKEN": "secret&word"}
    address = "http://127.0.0.1:8100/?token=secret%26word"
    assert clew.json("open") == {"page": address, "opened": False}
    clew.environment["BROWSER"] = BROWSER
    opened = clew("open").stdout.strip()
    assert opened.startswith("file:///") and "secret" not in opened
    assert f'href="{address}"' in Path(opened.removeprefix("file://")).read_text()


def test_where_a_server_runs_the_web_app_shows_it(clew: Project, tmp_path: Path) -> None:
    clew.sh("echo a > made.txt")
    with run_server(clew) as server:
        clew.environment |= server.variables
        address = f"{server.address}/?token={server.token}&to="
        target = quote(f"e1:{clew / 'made.txt'}@1", safe="")
        view = f"/lineage?target={target}&node={target}&direction=down"
        assert clew("open", "made.txt", "--down").stdout.strip() == address + quote(view, safe="")
        assert clew("trace", "made.txt", "--web").stdout.startswith(address + "%2Flineage%3F")
        assert clew("show", "e1", "--web").stdout.strip() == address + "%2Fruns%2Fe1"
        with server.client(headers={}) as browser:
            answer = browser.get(clew("open", "made.txt").stdout.strip())
            assert answer.status_code == 303
            assert answer.headers["location"].startswith("/lineage?target=e1%3A")


def test_down_needs_a_target(clew: Project) -> None:
    assert clew.error("open", "--down", status=2)[0] == "usage"
