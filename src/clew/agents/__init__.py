"""What the agents of a cluster share: from an observation to the graph, across any failure.

    spool         batches of events on disk, until they are delivered
    sender        delivers them, oldest first, and tries again
    destinations  a server (CLEW_SERVER), or the project on this machine
    agent         runs a witness and the sender until a signal
    audit         reads the audit log of the API server
    node          watches the volumes of the Pods on a node
    pod           watches those of one Pod, from inside, without privileges
    sidecars      the sidecar of selected Pods, its webhook, and the reader of its log

A witness decides what an observation means (`clew.witness`), without IO; an agent reads, and
appends the events to its spool. Only a destination writes to a graph.
Imported by commands of `cli`.
"""
