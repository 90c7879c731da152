"""The home page: what the server is, and its latest runs; and logging out."""

from datetime import datetime
from html import escape

from fastapi import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from clew.documents.runs import Run
from clew.pipelines.runs import run_list
from clew.pipelines.runs.run_list import Position
from clew.server.http.authentication import session_of, set_cookie
from clew.server.http.problems import problem_response
from clew.server.server_state import Service

_RUN_COUNT = 20
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Clew: {project}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light dark; --line: light-dark(#d5d9de, #3a4048);
  --quiet: light-dark(#59616b, #a3abb5); --ink: light-dark(#14181d, #e8ebee);
  --paper: light-dark(#fff, #15181c) }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--ink); background: var(--paper) }}
table {{ border-collapse: collapse; width: 100% }}
th, td {{ text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line) }}
th, .quiet {{ color: var(--quiet); font-weight: normal }}
</style></head><body>
<h1>Clew</h1>
<p>This server holds the record of <code>{project}</code>: what ran, what it read and wrote, and
where every result came from. It runs pipelines of the stock <code>kfp</code> client.</p>
<p><a href="/api/v1/openapi.json">API</a> (OpenAPI) ·
<a href="/metrics">metrics</a></p>
<h2>Latest runs</h2>
{runs}
<form method="post" action="/logout"><button>Log out</button></form>
</body></html>
"""
_NO_RUNS = """<p class="quiet">None yet. <code>clew pipeline run FILE</code> runs one.</p>"""


def show_home_page(request: Request) -> HTMLResponse:
    service: Service = request.app.state.service
    with service.project() as project:
        graph = project.graph
        runs = [
            run_list.get_run_summary(graph, listed.uid, alive=project.is_alive)
            for listed in run_list.list_positions(graph, Position(), _RUN_COUNT)
        ]
    text = _PAGE.format(project=escape(str(service.directory.root)), runs=_table(runs))
    return HTMLResponse(text, headers=_HEADERS)


async def log_out(request: Request) -> Response:
    """End the session of this browser, also at the origin of the notebooks."""
    session = session_of(request.scope)
    if session is None:
        message = "there is no session to end: the request was made with the token"
        hint = "a new token ends all sessions"
        return problem_response("/logout", 400, "usage", message, hint=hint)
    await request.app.state.sessions.end(session)
    response = PlainTextResponse("You are logged out.\n", headers={"Cache-Control": "no-store"})
    for name in request.app.state.cookies:
        set_cookie(response, request.scope, name, "", same_site="strict")
    return response


def _table(runs: list[Run]) -> str:
    if not runs:
        return _NO_RUNS
    rows = "".join(
        f'<tr><td><a href="/api/v1/runs/{escape(run.uid)}">{escape(run.id or "–")}</a></td>'
        f"<td>{escape(run.name or '')}</td><td>{escape(run.state)}</td>"
        f'<td class="quiet">{_format(run.started or run.created)}</td></tr>'
        for run in runs
    )
    head = "<tr><th>Run</th><th>Pipeline</th><th>State</th><th>Since (UTC)</th></tr>"
    return f"<table>{head}{rows}</table>"


def _format(at: datetime | None) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S") if at else ""
