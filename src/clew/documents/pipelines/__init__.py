"""The documents of pipelines: the `catalogue` (pipelines, versions, schedules, experiments), `runs`
with their tasks and artifacts, and their `logs`. Any package may import it."""
