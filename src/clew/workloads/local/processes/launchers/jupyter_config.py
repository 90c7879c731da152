"""How Jupyter serves on one machine, behind `clew up`.

It answers only requests that carry the access token, whose digest is in CLEW_ACCESS_SHA256: other
users of this machine can reach its port. For the same reason kernels talk over sockets in a private
directory, not over TCP. The checks of origin and _xsrf stay on, since the token is added on the way
to whatever a browser sends.
"""

import hashlib
import hmac
import os

from jupyter_server.auth import IdentityProvider, User

access_digest = os.environ["CLEW_ACCESS_SHA256"]
user_name = os.environ.get("USER") or "me"


class AccessTokenIdentity(IdentityProvider):
    """Accept requests that carry the access token, and no others."""

    login_available = False

    def get_user(self, handler):
        given = handler.request.headers.get("X-Clew-Access", "")
        digest = hashlib.sha256(given.encode()).hexdigest()
        return User(user_name) if hmac.compare_digest(digest, access_digest) else None


c = get_config()  # noqa: F821 - Jupyter gives it
c.ServerApp.ip = "127.0.0.1"
c.ServerApp.port_retries = 0
c.ServerApp.open_browser = False
c.ServerApp.allow_remote_access = True
c.ServerApp.allow_root = True
c.ServerApp.allow_unauthenticated_access = False
c.ServerApp.identity_provider_class = AccessTokenIdentity
c.IdentityProvider.token = ""
c.KernelManager.transport = "ipc"
c.ServerApp.root_dir = os.environ["CLEW_NOTEBOOK_ROOT"]
c.FileContentsManager.preferred_dir = os.environ["CLEW_NOTEBOOK_HOME"]
# The root holds only links to volumes; those lead out of it on purpose.
c.ContentsManager.allow_hidden = False
