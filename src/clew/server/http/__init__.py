"""HTTP itself, for all routes: limits, timeouts, error documents and the access log.

Contains middleware and nothing about executions, runs or notebooks; `server.identity` says who
makes a request. Imported by `server`.
"""
