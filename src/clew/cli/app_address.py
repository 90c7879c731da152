"""The address of the web app, where a server of the project runs: the one that CLEW_SERVER names,
else the one that `clew up` started here. So `clew open` shows the same page as the app does."""

from __future__ import annotations

import hmac
from urllib.parse import quote

from clew import project_directory, settings
from clew.settings import Settings


def find_app(chosen: Settings | None = None) -> str | None:
    """The address for a browser, which may have a token; None if no server is known."""
    chosen = chosen or settings.load()
    here = project_directory.find_here(chosen)
    if chosen.server is not None:
        from clew.api.delivery.http_client import connect_server

        return connect_server(chosen, here.token if here else None).page
    if here is None:
        return None
    from clew.kube.workload_tokens import token_digest
    from clew.workloads.local.local_backend import lock_path
    from clew.workloads.local.server_lock import find_running

    try:
        running = find_running(lock_path(here), 0)
        token = chosen.token or here.token.read_text().strip()
    except OSError:  # a project that this user may only read
        return None
    if running is None or not hmac.compare_digest(token_digest(token), running.token_digest):
        return None
    return f"{running.address}/?token={quote(token, safe='')}"


def view_address(app: str, path: str) -> str:
    """The address of one view of the app."""
    if "/?token=" in app:
        return f"{app}&to={quote(path, safe='')}"
    return f"{app.rstrip('/')}{path}"


def lineage_path(target: str, direction: str) -> str:
    words = quote(target, safe="")
    return f"/lineage?target={words}&node={words}&direction={quote(direction)}"
