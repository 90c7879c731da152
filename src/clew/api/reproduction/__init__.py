"""`clew reproduce`: run the Pods of a plan in a scratch namespace, or in containers here.

    plan_report    the plan and the report
    secret_checks  which Secrets changed since
    peer_checks    what changed behind Services and hosts; current_peers: who answers now
    record_reader  what a reproduction needs of the record
    preparation    the Pods and the objects around them, before anything is created
    cluster_run    the stages of a plan, in a scratch namespace
    local_run      the same in containers of this machine; working_directory: their files
    volume_access  bytes to and from fresh volumes
    object_access  bytes to and from fresh buckets

Decisions are in `replay.pods`; Kubernetes is reached through `kube.scratch`.
"""
