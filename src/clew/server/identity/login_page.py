"""The page that asks a browser without a session for the token.

It leads back to where the user wanted to go: to a path of this server, never to another site.
"""

import html
import re

from starlette.responses import HTMLResponse, Response

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
    "WWW-Authenticate": "Bearer",
}
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Log in to Clew</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 30rem; margin: 15vh auto; padding: 0 1rem;
  color: light-dark(#151a20, #e9edf1); background: light-dark(#f6f7f9, #0f1317) }
input, button { font: inherit; padding: .4rem .7rem }
input { width: 100%; box-sizing: border-box; margin: .3rem 0 .8rem }
.refusal { color: light-dark(#b3261e, #ff9089) }
</style></head><body><main>
<h1>Log in to Clew</h1>
{refusal}<p>Open the address that <code>clew up</code> or <code>clew server</code> printed; it
contains the token. Or enter the token:</p>
<form action="/" method="get">
{destination}<label for="token">Token</label>
<input id="token" name="token" type="password" required autocomplete="current-password" autofocus>
<button>Log in</button>
</form>
<p>It is also in the file <code>.clew/token</code> of the project.</p>
</main></body></html>
"""
_REFUSAL = """<p role="alert" class="refusal">This is not the token of the project. A personal
access token does not log in a browser.</p>
"""
_PATH = re.compile(r"/(?![/\\])[^\x00-\x20\\\x7f]{0,2000}")
"""A path of this server, with its query: `//host` and `/\\host` would be another site."""


def login_page(to: str = "/", *, refused: bool = False) -> Response:
    """`to`: the path that the user wanted; `refused`: whether a wrong token was entered."""
    hidden = f'<input type="hidden" name="to" value="{html.escape(to)}">\n'
    page = _PAGE.replace("{refusal}", _REFUSAL if refused else "")
    shown = hidden if to != "/" and is_own_path(to) else ""
    return HTMLResponse(page.replace("{destination}", shown), 401, _HEADERS)


def is_own_path(to: str) -> bool:
    return _PATH.fullmatch(to) is not None
