"""A reverse proxy for what runs beside the server: notebooks, TensorBoards, viewers of volumes.

`apps` gives these targets an origin of their own. `routing` knows which requests go to a target,
`targets` and, on a cluster, `services` where each is, `headers` what is passed on; `forwarding`
carries HTTP over the connections of `upstream`, `sockets` WebSockets; `traffic` counts what passed.
Every request that gets here came with the token or a session; neither is passed on. Only `services`
knows of Kubernetes, and asks `kube`.
"""
