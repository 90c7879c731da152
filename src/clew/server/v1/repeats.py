"""Repeats on the server: queue, follow and cancel them."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from clew.documents.executions.repeats import RepeatOptions, RepeatRequest, RepeatRequests
from clew.documents.ids import Uid
from clew.errors import NotAllowed, NotFound, UsageError
from clew.pipelines.runs import run_list
from clew.prov.queries.executions import check_is_command, find_execution
from clew.replay.repeat.parameters import find_words
from clew.replay.repeat.repeat_plan import replace_words
from clew.server.catalogue import repeat_requests
from clew.server.v1.dependencies import Limit, ProjectDep, ServiceDep, Text
from clew.server.v1.document_router import DocumentRouter

router = DocumentRouter(tags=["repeats"])

Id = Annotated[str, Path(description="The id of the repeat.", pattern="^[0-9a-f]{32}$")]
ExecutionId = Annotated[Text, Path(description="`e2`, its name, or its uid.", examples=["e1"])]
RunId = Annotated[Text, Path(description="`r1`, or its uid.", examples=["r1"])]
_MAX_CHARACTERS = 128 << 10
"""Of all parameters: they are stored with the repeat, and listed."""
_Word = Annotated[str, StringConstraints(max_length=100_000, pattern=r"^[^\x00]*$")]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=r"^[^\x00]*$")]


class Options(BaseModel):
    """How to repeat an execution."""

    model_config = ConfigDict(extra="forbid", strict=True)

    parameters: Annotated[dict[_Name, _Word], Field(max_length=1000)] = Field(
        default={},
        description="New values of parameters: by name, or by the position of the word in the"
        " command, counted from 0.",
    )
    incremental: bool = Field(default=False, description="Reuse results that are still valid.")
    network: bool = Field(
        default=False,
        description="Give it the server's network. 403 for an execution that was made elsewhere.",
    )
    gpu: bool = Field(
        default=False,
        description="Give it the server's GPUs, if the execution used them. 403 for an execution"
        " that was made elsewhere.",
    )


@router.post("/executions/{id}/repeats", status_code=202)
def repeat_execution(
    service: ServiceDep,
    project: ProjectDep,
    id: ExecutionId,  # noqa: A002
    request: Options | None = None,
) -> RepeatRequest:
    """Repeat an execution in isolation, and compare. It gets no secrets; what needs secrets is
    repeated with `clew repeat --secret`. The answer of the same request, sent again while it is
    queued or running, is the same repeat. 400 for a Pod: `GET reproduction-plan` says how it is
    reproduced."""
    options = request or Options()
    check_is_command(project.graph, find_execution(project.graph, id))
    execution = project.execution(id)
    if execution.made_elsewhere and (options.network or options.gpu):
        raise NotAllowed(
            f"{execution.id} was made elsewhere: a server gives it neither network nor GPUs",
            hint=f"if you trust it, repeat it yourself: clew repeat {execution.id} --network",
        )
    words = find_words(execution.command, options.parameters.items())
    replace_words(execution.command, words)  # raises an error if there is no such word
    if sum(map(len, words.values())) > _MAX_CHARACTERS:
        raise UsageError(
            f"the parameters have more than {_MAX_CHARACTERS} characters",
            hint="write them to a file, and repeat with clew repeat",
        )
    asked = RepeatOptions(
        parameters={str(position): word for position, word in sorted(words.items())},
        incremental=options.incremental,
        network=options.network,
        gpu=options.gpu,
    )
    return _queue(service, project, str(execution.id), execution.uid, asked)


@router.post("/runs/{id}/repeats", status_code=202)
def repeat_run(service: ServiceDep, project: ProjectDep, id: RunId) -> RepeatRequest:  # noqa: A002
    """Repeat every task of a pipeline run, each in isolation, and compare."""
    run = run_list.get_run(project.graph, id, alive=project.is_alive)
    if run.id is None:
        raise NotFound(f"the run {id} has not started", hint="try again when it has ended")
    if run.state in ("pending", "running"):
        raise UsageError(f"{run.id} is {run.state}", hint="repeat it when it has ended")
    if not any(task.execution for task in run.tasks):
        raise UsageError(f"no task of {run.id} has run", hint=f"clew pipeline show {run.id}")
    return _queue(service, project, run.id, run.uid, RepeatOptions())


def _queue(
    service: ServiceDep, project: ProjectDep, target: str, uid: Uid, options: RepeatOptions
) -> RepeatRequest:
    request = repeat_requests.queue_repeat(project.graph, target, uid, options)
    service.repeat_available.set()
    return repeat_requests.get_repeat(project.graph, request)


@router.get("/repeats")
def list_repeats(
    project: ProjectDep,
    target: Annotated[
        str, Query(max_length=32, description="The uid of an execution or run: only its repeats.")
    ] = "",
    limit: Limit = 100,
) -> RepeatRequests:
    """Repeats that a server was asked for and those of commands, newest first, without their output
    and results."""
    found = repeat_requests.list_repeats(project.graph, target=target, limit=limit)
    return RepeatRequests(repeats=tuple(found))


@router.get("/repeats/{id}")
def get_repeat(project: ProjectDep, id: Id) -> RepeatRequest:  # noqa: A002
    """How a repeat goes: what it prints, then its verdict, differences and causes."""
    return repeat_requests.get_repeat(project.graph, id)


@router.post("/repeats/{id}/cancel", status_code=202)
def cancel_repeat(project: ProjectDep, id: Id) -> RepeatRequest:  # noqa: A002
    """Cancel a repeat, without waiting for its end. One that has ended stays as it is."""
    repeat_requests.cancel_repeat(project.graph, id)
    return repeat_requests.get_repeat(project.graph, id)
