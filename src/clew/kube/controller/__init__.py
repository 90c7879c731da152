"""The operator: watches, work queue, reconciler, events and metrics, for every resource kind.

Contains nothing that is specific to one kind (`resources`). Its types and states are imported by
the rest of `kube` and by `workloads`, the operator itself by `cli`.
"""
