"""The documents that compare executions, pipeline runs and artifacts: `differences` of two, and up
to ten `side_by_side`. Any package may import it."""
