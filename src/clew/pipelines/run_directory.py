"""The directory of a run, `pipeline-runs/r1`, and the values of the run's placeholders."""

import time
from pathlib import Path

from clew.documents.ids import RunId, Uid

RUNS = "pipeline-runs"
"""Beside `.clew/`: a directory for each run, with one for each of its tasks."""
PIPELINE = "pipeline.yaml"
"""The text of the pipeline, in the directory of the run."""
WORKSPACE = "workspace"
"""The directory that all tasks share, in the directory of the run, if the pipeline has one."""


def placeholder_values(pipeline: str, run: RunId, uid: Uid, directory: Path) -> dict[str, str]:
    """`run`, `uid`: the id and uid of a run that starts now in `directory`."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    name = f"{pipeline}-{run}"
    return {
        "pipeline_job_name": name,
        "pipeline_job_resource_name": name,
        "pipeline_job_uuid": uid,
        "pipeline_root": str(directory),
        "workspace_path": str(directory / WORKSPACE),
        "pipeline_job_create_time_utc": now,
        "pipeline_job_schedule_time_utc": now,
    }
