"""Decides which tasks are ready, skipped, retried or finished, from plain state and without IO.

Never starts a process, reads a file or asks the clock: times are arguments. Imported by
`pipelines.tasks` and `pipelines.runner`.
"""
