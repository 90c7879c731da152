"""The values of the placeholders that mean a run: its name, uid, directory and time."""

import time
from pathlib import Path

from clew.documents.ids import RunId, Uid
from clew.pipelines.run_directory import WORKSPACE


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
