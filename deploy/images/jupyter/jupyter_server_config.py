"""How Jupyter serves in this image.

NB_PREFIX names the path that the notebook has on a cluster. CLEW_ACCESS_SHA256, which Clew's
operator sets, is the digest of an access token: Jupyter then answers only requests that carry this
token, and they come from Clew's server, its culler or the gateway, which know the user. Without it
nobody stands before Jupyter, so it asks for the token that it prints, on a cluster as well.
"""

import hashlib
import hmac
import os

from jupyter_server.auth import IdentityProvider, User

prefix = os.environ.get("NB_PREFIX", "").strip("/")
access_digest = os.environ.get("CLEW_ACCESS_SHA256", "")


class AccessTokenIdentity(IdentityProvider):
    """Accept requests that carry the access token, and no others.

    They do not count as token-authenticated: the token is added on the way, also to what a foreign
    page makes the browser send, so Jupyter's checks of origin and _xsrf stay on.
    """

    login_available = False

    def get_user(self, handler):
        given = handler.request.headers.get("X-Clew-Access", "")
        digest = hashlib.sha256(given.encode()).hexdigest()
        return User("jovyan") if hmac.compare_digest(digest, access_digest) else None


c = get_config()  # noqa: F821 - Jupyter gives it
c.ServerApp.ip = "*"
c.ServerApp.port = 8888
c.ServerApp.port_retries = 0
c.ServerApp.open_browser = False
c.ServerApp.allow_remote_access = True
if prefix:
    c.ServerApp.base_url = f"/{prefix}/"
if access_digest:
    c.ServerApp.identity_provider_class = AccessTokenIdentity
    c.IdentityProvider.token = ""
