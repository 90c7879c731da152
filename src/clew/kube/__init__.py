"""Everything that talks to Kubernetes: the resources Notebook, Tensorboard and PVCViewer.

    resources    the desired children and status of each kind, decided without IO
    controller   the operator: watches, work queue, reconciler, events, metrics
    culling      stops resources that were idle for too long
    backend      the cluster as the web app's server sees it
    client       the API client of the operator, and the kinds it knows
    cluster_cache   what the watches saw of the cluster
    service_lookup, proxy_route  how the server finds the Services that the operator made
    backend_tokens, shared_secret  tokens by which Pods authenticate the server

Knows nothing about projects, executions or the store. Imported by `workloads`, which has the
same resources on one machine, by `server` and `cli`; the viewer imports `backend_tokens`.
"""
