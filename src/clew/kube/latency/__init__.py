"""The measured latencies of nodes as Kubernetes objects: one `NodeLatency` for each node.

    node_latency         the object: what the scheduler asks (spec), what the agent found (status)
    location_config_map  the ConfigMap of the locations, as it is mounted
    node_latency_client  the object of one node, as its agent follows and fills it

An object of its own, instead of labels on nodes: every kubelet, controller and scheduler watches
nodes, and nobody but the extender needs latencies. `kube/scheduler` reads all of these objects.
"""
