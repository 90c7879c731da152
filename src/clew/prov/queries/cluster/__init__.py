"""Queries of what the witnesses of a cluster observed, as decision 16 defines them.

    targets          `pvc://…`, `s3://…`, `pod/NS/NAME`, `image@sha256:…`, … to what they name
    names            which volume, Pod or object a name stood for at a time
    read_origins     which write a read saw, by digest or by time (rules 1 and 2)
    volume_accesses  who may have written what is on a volume as a whole (rule 3)
    endpoints        which Pods an address or a Service led to at a time
    connections      which Pods a Pod talked to; peer_pods: what ran in them
    cluster_walk     what a walk of lineage follows of these; lineage_nodes: how it shows them
    cluster_nodes    Pods and their containers as nodes of a lineage
    ancestry         the Pods that a target depends on, as plain data for plans
    cluster_state    what existed at a time
    visibility       what of a lineage a caller may see
    pod_diff         how two Pods differ

Links that these modules infer are computed when they are asked for, and never stored. Imported by
the queries of lineage, `prov.export`, `api` and `server`.
"""
