"""Queries for recorded pipeline runs, their tasks and their changes. Imported by `pipelines`, `api`
and `server`, which add the requests for runs."""
