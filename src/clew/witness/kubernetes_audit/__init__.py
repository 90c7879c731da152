"""From the audit events of a Kubernetes API server to Clew events, without IO.

    audit_event         what an audit event says, and its bounds
    kubernetes_time     times of Kubernetes in nanoseconds
    object_types        the parts of Kubernetes objects that are read
    fold                the entry: one audit event in, Clew events out
    fold_state          what is remembered between events: creators, claims, members of Services
    audit_log_activity  the log itself as an execution, and its gaps
    pods                Pods, and what their containers run and read
    claims              claims, volumes and where the bytes are
    requests            requests that change an input or touch a Pod by hand
    controllers         what creates Pods, and the addresses of Services
    endpoints           which Pods a Service leads to, and until when

`docs/decisions/0016-how-cluster-lineage-works.md` says what becomes what. An agent reads the log
and keeps the state; nothing here knows where an event came from. Imported by `agents` and
`api.reproduction`.
"""
