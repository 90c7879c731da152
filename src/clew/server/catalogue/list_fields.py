"""What lists are of, and by what each may be filtered and sorted: in Kubeflow's words.

A state that is shown is more than a column: a run that is wanted to end is canceling, and one that
was ended has failed, as the stock client waits for no other end.
"""

from __future__ import annotations

from clew.server.catalogue import experiments, pipelines, runs, schedules, versions
from clew.server.catalogue.list_pages import Field, Table

_CREATED = Field("created", "moment")
_STORED = Field("CASE archived WHEN 1 THEN 'ARCHIVED' ELSE 'AVAILABLE' END")
_STATE = Field(
    "CASE state WHEN 'queued' THEN 'PENDING' WHEN 'succeeded' THEN 'SUCCEEDED'"
    " WHEN 'running' THEN CASE stop WHEN 1 THEN 'CANCELING' ELSE 'RUNNING' END ELSE 'FAILED' END"
)
_STATUS = Field("CASE enabled WHEN 1 THEN 'ENABLED' ELSE 'DISABLED' END")
_EVERYWHERE = {
    "id": Field("id"),
    "description": Field("description"),
    "created_at": _CREATED,
    "namespace": Field("SUBSTR(id, 1, 0)"),  # empty; PostgreSQL sorts by no constant
}
_NAMED = {
    "name": Field("name"),
    "display_name": Field("display_name"),
    "tags": Field("tags", "pairs"),
}
_CALLED = {"name": Field("name"), "display_name": Field("name")}

EXPERIMENTS = Table(
    "experiment",
    experiments.COLUMNS,
    {
        **_EVERYWHERE,
        **_CALLED,
        "experiment_id": Field("id"),
        "last_run_created_at": Field("last_run", "moment", optional=True),
        "storage_state": _STORED,
    },
)
PIPELINES = Table(
    "pipeline", pipelines.COLUMNS, {**_EVERYWHERE, **_NAMED, "pipeline_id": Field("id")}
)
VERSIONS = Table(
    "pipeline_version",
    versions.COLUMNS,
    {
        **_EVERYWHERE,
        **_NAMED,
        "pipeline_version_id": Field("id"),
        "pipeline_id": Field("pipeline"),
    },
)
RUNS = Table(
    "run",
    runs.COLUMNS,
    {
        **_EVERYWHERE,
        **_CALLED,
        "run_id": Field("id"),
        "experiment_id": Field("experiment"),
        "recurring_run_id": Field("COALESCE(schedule, '')"),
        "pipeline_id": Field("COALESCE(pipeline, '')"),
        "pipeline_version_id": Field("COALESCE(version, '')"),
        "scheduled_at": Field("scheduled", "moment", optional=True),
        "finished_at": Field("finished", "moment", optional=True),
        "state": _STATE,
        "status": _STATE,
        "storage_state": _STORED,
    },
)
SCHEDULES = Table(
    "schedule",
    schedules.COLUMNS,
    {
        **_EVERYWHERE,
        **_CALLED,
        "recurring_run_id": Field("id"),
        "experiment_id": Field("experiment"),
        "updated_at": Field("updated", "moment"),
        "status": _STATUS,
    },
)
