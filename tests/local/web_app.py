"""The web app of a real server in a real browser, and what every page of it must hold.

A module of tests gets it as the fixture `web_app` (`tests/local/conftest.py`). It chooses what is
served by defining the fixtures `web_project` and `web_options` itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, ConsoleMessage, Locator, Page, Response, expect
from tests.driver import Project
from tests.local.server import ServerAddress, run_server, run_up

_AXE = Path(__file__).parents[2] / "web/node_modules/axe-core/axe.min.js"
_RUN_AXE = """
async ([context, options]) => {
  const { violations } = await axe.run(context ?? document, options);
  const describe = (node) => `${node.target}: ${node.failureSummary}`;
  return violations.map(({ id, help, nodes }) =>
    ({ id, help, nodes: nodes.slice(0, 5).map(describe) }));
}
"""
_EXPECTED_MESSAGES = (
    "Failed to load resource",  # a refused request: it is noted with its address and status instead
    "The Cross-Origin-Opener-Policy header has been ignored",  # over plain HTTP from another host
)
_OPTIONS = {"resultTypes": ["violations"]}
PHONE = {"width": 390, "height": 844}


@dataclass
class WebApp:
    """The app, opened by a user who is logged in. `page` is the first window."""

    server: ServerAddress
    project: Project
    page: Page
    errors: list[str] = field(default_factory=list)
    """What its windows said went wrong: exceptions, and errors in the console."""

    def open(self, path: str = "/") -> Page:
        """Go to a page of the app in the first window, and wait for its heading."""
        return open_path(self.page, self.server, path)

    def new_window(self, path: str = "/") -> Page:
        """A second window of the same user. The caller closes it."""
        page = self.page.context.new_page()
        self.watch(page)
        return open_path(page, self.server, path)

    def watch(self, page: Page) -> None:
        """Keep the errors of this window in `errors`."""
        page.emulate_media(reduced_motion="reduce")
        page.on("pageerror", lambda error: self.errors.append(f"{page.url}: {error}"))
        page.on("console", lambda message: self._note(page, message))
        page.on("response", lambda response: self._note_response(page, response))

    def _note(self, page: Page, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(_EXPECTED_MESSAGES):
            self.errors.append(f"{page.url}: {message.text}")

    def _note_response(self, page: Page, response: Response) -> None:
        if response.status >= 400:
            self.errors.append(f"{page.url}: {response.status} {response.url}")

    def assert_no_errors(self, *expected: str) -> None:
        """No exception, no error in the console and no refused request since the last call.

        `expected`: parts of those that the test has caused.
        """
        errors = [one for one in self.errors if not any(part in one for part in expected)]
        self.errors.clear()
        assert not errors, "\n".join(errors)


@contextmanager
def open_web_app(
    context: BrowserContext, project: Project, *options: str, up: bool = False
) -> Iterator[WebApp]:
    """Serve the project with these options of `clew server`, and log in. `up`: with `clew up`,
    which has notebooks."""
    with (run_up if up else run_server)(project, *options) as server:
        yield (app := log_in(context, project, server))
        app.page.close()


def log_in(context: BrowserContext, project: Project, server: ServerAddress) -> WebApp:
    """Open the app of a server that has the records of this project."""
    app = WebApp(server, project, context.new_page())
    app.watch(app.page)
    app.page.goto(f"{server.address}/?token={server.token}")
    app.errors.clear()
    return app


def open_path(page: Page, server: ServerAddress, path: str) -> Page:
    page.goto(f"{server.address}{path}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    return page


def assert_accessible(page: Page, *, without: tuple[str, ...] = ()) -> None:
    """axe finds no violation on the page as it is now, in the light and the dark theme.

    `without`: CSS selectors of what is not ours, such as a frame.
    """
    context: Any = {"exclude": [[selector] for selector in without]} if without else None
    if not page.evaluate("'axe' in window"):
        page.evaluate(_axe())
    found = []
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for violation in page.evaluate(_RUN_AXE, [context, _OPTIONS]):
            nodes = "".join(f"\n  {node}" for node in violation["nodes"])
            found.append(f"{theme}: {violation['id']}: {violation['help']}{nodes}")
    page.emulate_media(color_scheme="light")
    assert not found, f"{page.url}\n" + "\n".join(found)


def assert_fits(page: Page) -> None:
    """The page is not wider than the window: nothing must be scrolled sideways to be read."""
    width, window = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= window, f"{page.url} is {width} pixels wide in a window of {window}"


@lru_cache(maxsize=1)
def _axe() -> str:
    assert _AXE.exists(), "axe-core is not installed: make web (make test does it)"
    return _AXE.read_text()


def row_of(page: Page, name: str) -> Locator:
    """The row of a table whose link has this name."""
    cell = page.get_by_role("cell").get_by_role("link", name=name, exact=True)
    return page.get_by_role("row").filter(has=cell)
