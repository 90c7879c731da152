"""Routes about what was recorded: executions, lineage, versions of files and their content, notes.

They only read the record, but for notes, tags and the removal of executions. Imported by
`v1.routes` and `server.app`.
"""
