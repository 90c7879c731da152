"""Reproducing what Pods made: which of them run again, as what, and how their results compare.

    pod_plan           which Pods run again, and in which order; pod_graph: its candidates
    stages             what each Pod of a plan needs first, and what it has to leave
    scratch_pod        the Pod to create for a recorded one; scratch_volumes: its volumes
    scratch_namespace  what the namespace has for these Pods, and what was found meanwhile
    pod_spec           the parts of a recorded Pod that it keeps
    bucket_names       finds the names of buckets in a Pod's settings, and replaces them
    container_plan     a Pod as containers of one machine
    pod_divergence     results compared with the record: what diverged first
    peer_changes       what changed behind the Services that Pods asked
    volume_files_main  the program that writes and hashes files on volumes

Pure decisions over the ancestry of a target (`prov.cluster.ancestry`) and recorded Pod specs, which
are untrusted. Never talks to Kubernetes (`kube` does) and reads no database. Imported by `api`.
"""
