"""Names of the directory of a run, `pipeline-runs/r1`, and of what is in it."""

RUNS = "pipeline-runs"
"""Beside `.clew/`: a directory for each run, with one for each of its tasks."""
PIPELINE = "pipeline.yaml"
"""The text of the pipeline, in the directory of the run."""
WORKSPACE = "workspace"
"""The directory that all tasks share, in the directory of the run, if the pipeline has one."""
