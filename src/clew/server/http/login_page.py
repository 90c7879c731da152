"""The page that asks a browser without a session for the token."""

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
</style></head><body>
<h1>Log in to Clew</h1>
<p>Open the address that <code>clew up</code> or <code>clew server</code> printed; it contains the
token. Or enter the token:</p>
<form action="/" method="get">
<label for="token">Token</label>
<input id="token" name="token" type="password" required autocomplete="current-password">
<button>Log in</button>
</form>
<p>It is also in the file <code>.clew/token</code> of the project.</p>
</body></html>
"""


def login_page() -> Response:
    return HTMLResponse(_PAGE, 401, _HEADERS)
