"""All that speaks Kubernetes: the custom resources Notebook, Tensorboard and PVCViewer.

What a resource is to become is decided in plain functions over plain JSON, without a cluster:
`notebooks`, `tensorboards` and `viewers` (what they want made), `reasons` (what to say of it),
`placing` (on which node) and `culling` (whether it was idle). `watching`, `reconciling` and
`activity` are the shell around them: they look at the world, carry the difference out, and ask the
servers when they were last used. `finding` is for the server, which leads to what was made, by the
`ways` that are told on Services; `secrets` keeps its token. Only `api`, the server and the command
line may import this room.
"""
