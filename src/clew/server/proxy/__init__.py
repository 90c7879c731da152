"""The way to what runs beside the server: notebooks, TensorBoards, viewers of volumes.

`routing` knows which requests go there, `targets` and, on a cluster, `services` where each is,
`headers` what is passed on; `forwarding` carries HTTP over the connections of `upstream`, `sockets`
WebSockets; `traffic` remembers who was used, and when. Whoever gets here has shown the token;
neither that nor the cookie made from it goes on to what is behind. Only `services` knows of
Kubernetes, and asks `kube`.
"""
