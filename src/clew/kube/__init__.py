"""All that speaks Kubernetes: the custom resources Notebook, Tensorboard and PVCViewer.

What a resource is to become is decided in plain functions over plain JSON, without a cluster:
`notebooks`, `tensorboards` and `viewers` (what they want made), `policies`, `access` and
`pod_security` (who may reach it, and with which rights it runs), `reasons` (what to say of it),
`placing` (on which node) and `culling` (whether it was idle). `watching`, `reconciling`,
`namespaces` and `activity` are the shell around them: they look at the world, carry the difference
out, and ask the servers when they were last used. `finding` is for the server, which leads to what
was made, by the `ways` that are told on Services; `secrets` keeps its token, and the key of access
tokens. Only `api`, the server and the command line may import this room; the viewer imports
`access`.
"""
