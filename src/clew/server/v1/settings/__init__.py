"""Routes of the web app's settings: access tokens, remotes, and the server itself.

Imported by `v1.routes`.
"""
