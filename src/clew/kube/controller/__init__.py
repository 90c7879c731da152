"""The operator: watches, work queue, reconciler, events and metrics, for every resource kind.

Contains nothing that is specific to one kind (`resources`). Imported by `cli`.
"""
