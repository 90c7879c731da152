"""The pipelines of a local project: runs, their tasks, logs and artifacts."""
