"""Deliver executions recorded here to the server that CLEW_SERVER names.

    http_client  requests to one server; failures become Clew errors
    unsent       which executions the server does not have yet
    delivery     upload missing content, then the events

Only the standard library speaks HTTP here, and nothing is loaded unless CLEW_SERVER is set.
Imported by `api.local` and `api.remote`; imports neither.
"""
