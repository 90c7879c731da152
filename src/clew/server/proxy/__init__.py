"""A reverse proxy for notebooks, TensorBoards and volume viewers.

`app_origin` serves the targets at an origin of their own. `routing` decides which requests go to
a target; `targets` and, on a cluster, `cluster_targets` know where it is; `headers` decides what
is passed on. `http_forwarding` and `http_client` carry HTTP, `websocket` carries WebSockets, and
`usage` counts traffic. Every request here was authenticated; the token and the session are never
passed on. Only `cluster_targets` uses `kube`. Imported by `server.app`.
"""
