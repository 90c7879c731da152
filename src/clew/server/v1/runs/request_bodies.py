"""Request bodies to queue or resume a run."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Jobs = Annotated[
    int | None,
    Field(
        ge=1, le=10_000, description="Concurrent tasks; at most the number of the server's cores."
    ),
]


class RunRequest(BaseModel):
    """A run to be queued: of the pipeline in `spec`, or of an uploaded pipeline version."""

    model_config = ConfigDict(extra="forbid")

    spec: Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\x00]*$")] | None = Field(
        default=None, description="A compiled pipeline, as YAML or JSON."
    )
    pipeline: Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")] | None = None
    version: Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")] | None = None
    name: Annotated[str, StringConstraints(max_length=255, pattern=r"^[^\x00]*$")] | None = None
    description: Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")] = ""
    experiment: Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")] | None = (
        Field(
            default=None, description="The id of the experiment; the default experiment if missing."
        )
    )
    parameters: dict[str, Any] = {}
    jobs: Jobs = None
    reuse: bool = Field(default=True, description="Reuse the results of earlier tasks.")
    on_host: bool = Field(
        default=False,
        description="Run container components as processes. 403 unless the server was started with"
        " --on-host.",
    )


class ResumeRequest(BaseModel):
    """Options of resuming a run."""

    model_config = ConfigDict(extra="forbid")

    jobs: Jobs = None
