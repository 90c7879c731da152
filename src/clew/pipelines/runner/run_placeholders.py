"""The values of the placeholders that mean a run: its name, uid, directory and time."""

import time

from clew.pipelines.runner.run_types import RunContext


def placeholder_values(
    pipeline: str, context: RunContext, *, root: str, workspace: str
) -> dict[str, str]:
    """Of a run that starts now. `root`: where its artifacts are; `workspace`: the directory that
    its tasks share."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    name = f"{pipeline}-{context.id}"
    return {
        "pipeline_job_name": name,
        "pipeline_job_resource_name": name,
        "pipeline_job_uuid": context.uid,
        "pipeline_root": root,
        "workspace_path": workspace,
        "pipeline_job_create_time_utc": now,
        "pipeline_job_schedule_time_utc": now,
    }
