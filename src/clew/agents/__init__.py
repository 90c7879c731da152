"""The agents that observe a cluster, and what they share: spools and their delivery.

    spool         batches of events on disk, until they are delivered
    sender        delivers them, oldest first, and tries again
    destinations  a server (CLEW_SERVER), or the project on this machine
    agent         runs a witness and the sender until a signal
    audit         reads the audit log of the API server
    node          watches the volumes of the Pods on a node
    pod           watches those of one Pod, from inside, without privileges
    latency       measures latencies from its node, and publishes them in Kubernetes
    sidecars      the sidecar of selected Pods, its webhook, and the reader of its log

A witness decides what an observation means (`clew.witness`), without IO. Its agent reads, and
appends the events to a spool. Only a destination writes to a graph.
Imported by commands of `cli`.
"""
