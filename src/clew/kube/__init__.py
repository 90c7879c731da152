"""Everything that talks to Kubernetes: the operator, the web app's back end, Pods.

    resources        the desired children and status of each kind, decided without IO
    training         training jobs: their Pods, restarts and end, decided without IO
    controller       the operator: watches, work queue, reconciler, events, metrics
    scheduler        the extender that tells kube-scheduler where latency-aware Pods should run
    latency          the latencies that agents publish, and the locations that they measure
    culling          stops resources that were idle for too long
    backend          the cluster as the web app's server sees it
    client           the API client of the operator, and the kinds it knows
    cluster_cache    what the watches saw of the cluster
    objects          fields that all objects have; webhook_objects: those of a webhook
    node_pods        the Pods of one node and the volumes of their claims, for the node agent
    own_pod          what a Pod may read of itself, for the witness inside of it
    pod_replacement  replaces Pods with the rights of the user
    scratch          Pods that are run again, in a namespace of their own
    tasks            tasks of pipelines as Pods
    pod_status, quantities  read the states of a Pod's containers, and numbers with units
    service_addresses, proxy_route  how the server finds the Services that the operator made
    workload_tokens, shared_secret  tokens by which Pods authenticate the server

Knows nothing about projects, executions or the store. Imported by `workloads`, which has the
same resources on one machine, by `api`, `pipelines`, `agents`, `server` and `cli`; the
viewer imports `workload_tokens`.
"""
