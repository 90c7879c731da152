"""Reproducing what Pods made: which of them run again, as what, and how their results compare.

Pure decisions over the ancestry of a target (`prov.cluster.ancestry`) and recorded Pod specs, which
are untrusted. Never talks to Kubernetes (`kube` does) and reads no database. Imported by `api`.
"""
