"""Placeholders of the run in every place that allows them, and settings that need a Pod."""

import json

from tests.driver import Project

PIPELINE = """
from kfp import dsl

@dsl.component
def told(text: str) -> str:
    import os
    return text + "|" + os.environ.get("ABOUT", "")

@dsl.component
def read(data: dsl.Input[dsl.Dataset]) -> dict:
    return {"uri": data.uri, **data.metadata}

@dsl.component(task_config_passthroughs=[dsl.TaskConfigField.RESOURCES])
def configured(config: dsl.TaskConfig) -> str:
    return repr(config.resources)

@dsl.container_component
def printed(out: dsl.OutputPath(str)):
    return dsl.ContainerSpec(
        image="example.org/none:1", command=["sh", "-c", 'printf "%s|" "$@" > "$0"', out],
        args=[dsl.PIPELINE_JOB_NAME_PLACEHOLDER, dsl.PIPELINE_JOB_RESOURCE_NAME_PLACEHOLDER,
              dsl.PIPELINE_JOB_ID_PLACEHOLDER, dsl.PIPELINE_TASK_NAME_PLACEHOLDER,
              dsl.PIPELINE_TASK_ID_PLACEHOLDER, dsl.PIPELINE_ROOT_PLACEHOLDER,
              dsl.PIPELINE_JOB_CREATE_TIME_UTC_PLACEHOLDER,
              dsl.PIPELINE_JOB_SCHEDULE_TIME_UTC_PLACEHOLDER,
              dsl.PIPELINE_TASK_EXECUTOR_OUTPUT_PATH_PLACEHOLDER,
              dsl.PIPELINE_TASK_EXECUTOR_INPUT_PLACEHOLDER])

@dsl.pipeline
def about():
    printed()
    first = told(text=f"<{dsl.PIPELINE_JOB_NAME_PLACEHOLDER}>")
    first.set_env_variable("ABOUT", "job " + dsl.PIPELINE_JOB_ID_PLACEHOLDER)
    with dsl.ParallelFor(["x", dsl.PIPELINE_ROOT_PLACEHOLDER]) as item:
        told(text=item)
    with dsl.If(first.output == "<about-r1>|job " + dsl.PIPELINE_JOB_ID_PLACEHOLDER):
        told(text="the same")
    found = dsl.importer(
        artifact_uri="/nowhere/" + dsl.PIPELINE_JOB_NAME_PLACEHOLDER, artifact_class=dsl.Dataset,
        metadata={"job": dsl.PIPELINE_JOB_ID_PLACEHOLDER})
    read(data=found.output)
    configured()
"""


def test_every_placeholder_in_every_place(project: Project) -> None:
    (project / "about.py").write_text(PIPELINE)
    ran = project.command("pipeline", "run", "about.py", "--on-host", "--json")
    assert ran.returncode == 0, ran.stderr
    assert b"there is no Pod here" in ran.stderr
    document = json.loads(ran.stdout)
    uid, root = document["uid"], str(project / "pipeline-runs" / "r1")
    found = {task["name"]: task["outputs"] for task in document["tasks"]}
    *words, created, scheduled, output, given, _ = found["printed"]["out"].split("|")
    assert words == ["about-r1", "about-r1", uid, "printed", f"{uid}/printed", root]
    assert created == scheduled
    assert document["started"].startswith(created[:13])
    assert output == f"{root}/printed/executor_output.json"
    assert json.loads(given)["outputs"]["outputFile"] == output
    assert found["told"] == {"Output": f"<about-r1>|job {uid}"}
    assert found["for-loop-2/1/told-2"] == {"Output": f"{root}|"}
    assert found["condition-3/told-3"] == {"Output": "the same|"}
    assert found["read"] == {"Output": {"uri": "/nowhere/about-r1", "job": uid}}
    assert found["configured"] == {"Output": "None"}
