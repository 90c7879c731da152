"""What a run is called and where it is: what the placeholders of its tasks stand for."""

from __future__ import annotations

import time
from pathlib import Path

WORKSPACE = "workspace"
"""In a run's directory: the one that its tasks share, if the pipeline asks for it."""


def about(pipeline: str, id: str, uid: str, place: Path) -> dict[str, str]:  # noqa: A002
    """`id`, `uid`: of the run, whose directory is `place`."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    name = f"{pipeline}-{id}"
    return {
        "pipeline_job_name": name,
        "pipeline_job_resource_name": name,
        "pipeline_job_uuid": uid,
        "pipeline_root": str(place),
        "workspace_path": str(place / WORKSPACE),
        "pipeline_job_create_time_utc": now,
        "pipeline_job_schedule_time_utc": now,
    }
