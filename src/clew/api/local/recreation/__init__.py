"""Recreating a file of a local project: from the store, from disk, or by running executions again.

`content_sources` finds where the needed contents are, or which executions make them; `recreate`
runs these and writes the file. Imported by `api.local.project` and the server's routes.
"""
