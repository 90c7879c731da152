"""Open a page in the user's browser: in the web app if a server runs, else as a file.

The page of a lineage is a file then. It lies in a directory that only this user can read, since it
shows paths and commands. The address of a server has a token, which the command line of a browser
would show to every user of the machine: so the browser gets a private file that leads there.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from clew import settings
from clew.atomic_file import write_atomically
from clew.cli.output import print_json, print_line, print_message
from clew.errors import NotAllowed

if TYPE_CHECKING:
    from clew.api.project import Project
    from clew.documents.lineage.lineage import Lineage

_REDIRECT = """<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"><title>Clew</title>
<a href="{address}">Clew</a>
"""


def open_lineage(
    project: Project, lineage: Lineage, *, print_only: bool = False, as_json: bool
) -> None:
    """Open the lineage in the web app; where no server runs, write a page of it and open that."""
    import clew
    from clew.cli.app_address import find_app, lineage_path, view_address
    from clew.cli.lineage import page

    if (app := find_app()) is not None:
        address = view_address(app, lineage_path(lineage.target, lineage.direction))
        open_server(address, print_only=print_only, as_json=as_json)
        return
    name = f"{project.uid} {lineage.direction} {lineage.target}"
    path = _write_page("lineage", name, page.render(lineage.as_json(), version=clew.__version__))
    _open_page(path.as_uri(), str(path), print_only=print_only, as_json=as_json)


def open_target(
    target: str, *, down: bool = False, print_only: bool = False, as_json: bool
) -> None:
    """Open the page of the lineage of what the user typed."""
    import clew

    with clew.open() as project:
        lineage = project.lineage(target, direction="down" if down else "up")
        open_lineage(project, lineage, print_only=print_only, as_json=as_json)


def open_run(execution: str, *, as_json: bool) -> None:
    """Open the page of an execution or a run in the web app; without a server, its lineage."""
    import clew
    from clew.cli.app_address import find_app, view_address

    app = find_app()
    if app is None:
        open_target(execution, as_json=as_json)
        return
    with clew.open() as project:
        found = project.lineage(execution, depth=0).target
    path = f"/runs/{quote(found.partition('.')[0], safe='')}"
    open_server(view_address(app, path), print_only=False, as_json=as_json)


def open_server(address: str, *, print_only: bool, as_json: bool) -> None:
    """Open a page of a server. `address` may have a token."""
    path = _write_redirect(address)
    _open_page(path.as_uri(), address, print_only=print_only, as_json=as_json)


def show_server(address: str) -> None:
    """Open a server's page if there is a browser; print nothing."""
    if settings.load().display:
        _start_browser(_write_redirect(address).as_uri())


def _write_redirect(address: str) -> Path:
    text = _REDIRECT.format(address=html.escape(address))
    return _write_page("server", urlsplit(address).netloc, text)


def _write_page(kind: str, name: str, text: str) -> Path:
    """Write a file that only this user can read; the next page with this name replaces it."""
    from blake3 import blake3

    directory = settings.load().cache / "pages"
    digest = blake3(name.encode(errors="surrogateescape")).hexdigest(length=8)
    path = directory / f"{kind}-{digest}.html"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        write_atomically(path, text.encode())
    except OSError as error:
        raise NotAllowed(
            f"cannot write the page {path}: {error.strerror}",
            hint="set XDG_CACHE_HOME to a directory of yours",
        ) from error
    return path


def _open_page(uri: str, shown: str, *, print_only: bool, as_json: bool) -> None:
    """Open `uri`; without a browser or a display print `shown`."""
    opened = not print_only and settings.load().display and _start_browser(uri)
    if as_json:
        print_json({"page": shown, "opened": opened})
    elif opened:
        print_message("opened in the browser")
    else:
        print_line(shown)


def _start_browser(uri: str) -> bool:
    import webbrowser

    return webbrowser.open(uri)
