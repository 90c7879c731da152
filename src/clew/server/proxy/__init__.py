"""A reverse proxy for notebooks, TensorBoards and volume viewers.

`app_origin` serves the targets at an origin of their own. `routing` decides which requests go to
a target. `targets` reads the addresses of targets from a file, `local_targets` asks the back end of
this machine for them, and `cluster_targets` finds them in a cluster. `headers` decides what is
passed on. `http_forwarding` and `http_client` carry HTTP, `websocket` carries WebSockets, and
`usage` counts traffic. Every request here was authenticated; the token and the session are never
passed on. Only `local_targets` and `cluster_targets` use `kube`. Imported by `server`.
"""
