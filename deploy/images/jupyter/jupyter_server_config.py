"""How Jupyter serves in this image.

A cluster names in NB_PREFIX where the notebook is to be found, and lets in only whom it knows:
Jupyter then asks for nothing. Without it, nobody stands before Jupyter: it serves `/`, and asks
for the token that it prints.
"""

import os

prefix = os.environ.get("NB_PREFIX", "").strip("/")

c = get_config()  # noqa: F821 - Jupyter gives it
c.ServerApp.ip = "*"
c.ServerApp.port = 8888
c.ServerApp.port_retries = 0
c.ServerApp.open_browser = False
c.ServerApp.allow_remote_access = True
if prefix:
    c.ServerApp.base_url = f"/{prefix}/"
    c.IdentityProvider.token = ""
