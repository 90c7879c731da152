"""HTTP itself, for all routes: identity, limits, timeouts, error documents and the access log.

Contains middleware and nothing about executions, runs or notebooks. Imported by `server`.
"""
