"""Container components: in their images, or with --on-host as processes of this machine."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver import CLEW, Project
from tests.local.programs.compiling import HERE, compile_pipeline
from tests.local.programs.runtimes import Daemon, docker, podman
from tests.local.test_cmd_pipeline import run, tasks
from tests.wait import wait_until

BOXED = HERE / "boxed" / "pipeline.py"
IMAGE = "example.org/busy:1"
ONE = """
from kfp import dsl

@dsl.container_component
def one(data: dsl.Output[dsl.Dataset], out: dsl.OutputPath({kind}), n: int = 1):
    return dsl.ContainerSpec(image="example.org/busy:1", command=["sh", "-ec"], args=[{script}])

@dsl.pipeline
def alone():
    one()
"""
MODULE = """
from kfp import dsl

@dsl.component(base_image="example.org/busy:1", target_image="example.org/built:1")
def add(a: int, b: int, made: dsl.Output[dsl.Dataset]) -> int:
    import helping
    with open(made.path, "w") as file:
        file.write(helping.WORDS)
    return a + b

@dsl.pipeline
def adding(a: int = 1) -> int:
    return add(a=a, b=2).outputs["Output"]
"""

LIGHT = """
from kfp import dsl

@dsl.component
def light(number: dsl.OutputPath(int), text: dsl.OutputPath(str)):
    for path in (number, text):
        with open(path, "w") as file:
            file.write(" 5\\n")

@dsl.pipeline
def alone():
    light()
"""
MAPPING = """
[configmaps.settings]
mode = "fast"

[pvcs]
data = "data"
"""
MOUNTED = """
    task = one()
    kubernetes.mount_pvc(task, "data", mount_path="/somewhere")
    kubernetes.use_config_map_as_env(task, "settings", {"mode": "MODE"})
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Where no container runtime answers."""
    return Project(tmp_path, DOCKER_HOST=f"unix://{tmp_path}/none", CONTAINER_HOST="unix:///none")


@pytest.fixture(scope="module", params=[docker, podman], ids=lambda one: str(one.__name__))
def daemon(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    with request.param() as found:
        found.image(IMAGE, "first")
        found.runs(IMAGE)
        yield found


# The tests that show that either runtime works run on both. The others run on the faster one.
PODMAN = pytest.mark.parametrize("daemon", [podman], indirect=True, ids=["podman"])


def states(document: dict[str, Any]) -> set[str]:
    return {task["state"] for task in document["tasks"]}


def alone(project: Project, script: str, kind: str = "str") -> str:
    (project / "one.py").write_text(ONE.format(kind=kind, script=script))
    return "one.py"


def test_refused_without_a_runtime_or_on_host(project: Project) -> None:
    error = run(project, BOXED, status=2)["error"]
    assert error["code"] == "pipeline-refused"
    assert error["message"].startswith(
        "deploymentSpec.executors.exec-filter-text.container.image: "
    )
    assert "--on-host" in error["hint"]
    assert json.loads(project.command("pipeline", "list", "--json").stdout) == []


def test_published_components_on_the_host(project: Project) -> None:
    boxed = compile_pipeline(BOXED, project.folder)
    ran = project.command("pipeline", "run", boxed, "--on-host", "--json")
    assert b"container components run as processes of this machine" in ran.stderr
    document = json.loads(ran.stdout)
    assert document["outputs"] == {"Output": "Two;three;three and a half; 3 True"}
    assert tasks(document)["filter-text-2"]["outputs"] == {"count": 1}
    said = project.command("pipeline", "logs", "r1/join-lines").stdout
    assert said == b'--options {"keep": true} --prefix <a b>\n'
    assert project.command("pipeline", "logs", "r1/join-lines-2").stdout.endswith(b"--bare\n")
    traced = json.loads(project.command("trace", "r1/join-lines:joined", "--json").stdout)
    labels = {node["label"] for node in traced["nodes"]}
    assert str(project / "pipeline-runs" / "r1" / "write" / "text") in labels
    again = tasks(run(project, boxed, "--on-host"))
    names = ("write", "join-lines", "tell")
    states = {again[name]["state"] for name in names}
    assert states == {"reused"}, {name: again[name]["why"] for name in names}
    changed = tasks(run(project, boxed, "--on-host", "-p", "pattern=o"))
    assert (changed["write"]["state"], changed["filter-text"]["state"]) == ("reused", "succeeded")


def test_on_the_host_undeclared_files_prevent_reuse(project: Project, tmp_path: Path) -> None:
    (tmp_path / "extra").write_text("1")
    file = alone(project, f'f"cat {tmp_path}/extra > {{out}}"')
    assert tasks(run(project, file, "--on-host"))["one"]["outputs"] == {"out": "1"}
    assert states(run(project, file, "--on-host")) == {"reused"}
    (tmp_path / "extra").write_text("2")
    assert tasks(run(project, file, "--on-host"))["one"]["outputs"] == {"out": "2"}


@pytest.mark.parametrize(
    ("kind", "written", "value"),
    [
        ("str", " 7 ", " 7 "),
        ("int", " 7 ", 7),
        ("float", "0.5", 0.5),
        ("bool", "True", True),
        ("bool", "false", False),
        ("list", '[1, "a"]', [1, "a"]),
        ("dict", '{"a": null}', {"a": None}),
    ],
)
def test_outputs_are_read_by_their_types(
    project: Project, kind: str, written: str, value: Any
) -> None:
    script = f"printf '%s' '{written}' > $1"
    file = alone(project, f'{script!r}, "sh", out', kind)
    assert tasks(run(project, file, "--on-host"))["one"]["outputs"] == {"out": value}


def test_executor_output_wins_over_files(project: Project) -> None:
    script = (
        '"echo 7 > $1; echo \'{\\"parameterValues\\": {\\"out\\": 8}}\' > $2", "sh", out, '
        '"{{$.outputs.output_file}}"'
    )
    file = alone(project, script, "int")
    assert tasks(run(project, file, "--on-host"))["one"]["outputs"] == {"out": 8}


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ('"true"', "it left no value for its output out"),
        ('f"echo many > {out}"', "its output out: 'many' is not an integer"),
        ('"exit 3"', "it ended with status 3"),
        ('"kill -9 $$"', "it ended with signal 9"),
    ],
)
def test_failures(project: Project, script: str, why: str) -> None:
    document = run(project, alone(project, script, "int"), "--on-host", status=1)
    assert document["tasks"][0]["error"] == why


def test_arguments_that_are_too_long(project: Project) -> None:
    document = run(project, alone(project, '"x" * 200_000'), "--on-host", status=1)
    assert "pass a file instead" in document["tasks"][0]["error"]


def test_lightweight_components_write_outputs_to_files_too(project: Project) -> None:
    (project / "light.py").write_text(LIGHT)
    document = run(project, "light.py")
    assert document["tasks"][0]["outputs"] == {"number": 5, "text": " 5\n"}


def test_a_missing_program(project: Project) -> None:
    file = alone(project, '"true"')
    text = (project / file).read_text().replace('"sh", "-ec"', '"no-such-program"')
    (project / file).write_text(text)
    document = run(project, file, "--on-host", status=1)
    assert "no-such-program" in document["tasks"][0]["error"]


def test_cancel_stops_a_command(project: Project, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    script = (
        f"trap '' TERM; echo $$ > {mark}.part; mv {mark}.part {mark}; while :; do sleep 1; done"
    )
    file = alone(project, repr(script))
    _canceled(project, file, "--on-host", begun=mark.exists)
    assert not Path(f"/proc/{mark.read_text().strip()}").exists()


def test_containerised_python_on_the_host(project: Project) -> None:
    (project / "adding.py").write_text(MODULE)
    (project / "helping.py").write_text("WORDS = 'helped'\n")
    (project / "kfp_config.ini").write_text("[Components]\nadd = adding.py\n")
    assert run(project, "adding.py", status=2)["error"]["code"] == "pipeline-refused"
    assert run(project, "adding.py", "--on-host", "-p", "a=5")["outputs"] == {"Output": 7}
    assert project.command("cat", "r1/add:made").stdout == b"helped"
    (project / "helping.py").write_text("WORDS = 'helped again'\n")
    run(project, "adding.py", "--on-host", "-p", "a=5")
    assert project.command("cat", "r2/add:made").stdout == b"helped again"


# -- in their images


@pytest.fixture
def boxes(project: Project, daemon: Daemon) -> Project:
    """Where a container runtime answers."""
    project.environment.update(daemon.variables)
    return project


def test_published_components_in_their_image(boxes: Project, daemon: Daemon) -> None:
    document = run(boxes, BOXED)
    assert document["outputs"] == {"Output": "Two;three;three and a half; 3 True"}
    said = boxes.command("pipeline", "logs", "r1/join-lines").stdout
    assert said == b'--options {"keep": true} --prefix <a b>\n'
    traced = json.loads(boxes.command("trace", "r1/join-lines:joined", "--json").stdout)
    labels = {node["label"] for node in traced["nodes"]}
    assert labels >= {"r1/join-lines", "r1/filter-text", "r1/write"}
    assert str(boxes / "pipeline-runs" / "r1" / "write" / "text") in labels
    assert states(run(boxes, BOXED)) == {"reused"}
    Path(tasks(document)["join-lines"]["artifacts"]["joined"][0]["uri"]).write_text("damaged")
    assert tasks(run(boxes, BOXED))["join-lines"]["state"] == "succeeded"


def test_a_changed_image_is_not_reused(boxes: Project, daemon: Daemon) -> None:
    file = alone(boxes, 'f"cat /mark > {out}; echo {n} > {data.path}; [ ! -e /etc/os-release ]"')
    assert tasks(run(boxes, file))["one"]["outputs"] == {"out": "first"}
    shown = json.loads(boxes.command("show", "r1/one", "--json").stdout)
    assert f"processes inside the image {IMAGE} are not recorded" in str(shown["gaps"])
    why = json.loads(boxes.command("pipeline", "why", "r1/one", "--json").stdout)
    digest = daemon("image", "inspect", "-f", "{{.Id}}", IMAGE).strip()
    assert why["parts"]["image"] == IMAGE
    assert why["image_digest"].removeprefix("sha256:") == digest.removeprefix("sha256:")
    assert states(run(boxes, file)) == {"reused"}
    daemon.image(IMAGE, "second")
    again = tasks(run(boxes, file))["one"]
    assert (again["outputs"], again["state"]) == ({"out": "second"}, "succeeded")
    assert again["why"] == "its image changed since r1/one"
    daemon("rmi", IMAGE)
    assert f"{IMAGE} is not on this machine" in run(boxes, file, status=2)["error"]["message"]
    daemon.image(IMAGE, "first")


@PODMAN
def test_a_directory_created_in_an_image(boxes: Project) -> None:
    file = alone(
        boxes, 'f"mkdir -p {data.path}/in; echo -n x > {data.path}/in/it; echo -n > {out}"'
    )
    made = Path(tasks(run(boxes, file))["one"]["artifacts"]["data"][0]["uri"])
    assert (made / "in" / "it").read_text() == "x"
    assert made.parent.stat().st_mode & 0o022 == 0  # as open as before, no more
    assert tasks(run(boxes, file))["one"]["state"] == "succeeded"


@PODMAN
def test_variables_and_failures_in_an_image(boxes: Project) -> None:
    file = alone(boxes, 'f"echo -n $GREETING $HOME > {out}; exit $STATUS"')
    more = 'set_env_variable("GREETING", "hi").set_env_variable("STATUS", "{}")'
    text = (boxes / file).read_text().replace("    one()", f"    one().{more}")
    (boxes / file).write_text(text.replace("{}", "0"))
    found = tasks(run(boxes, file))["one"]["outputs"]["out"]
    assert found.split()[0] == "hi"
    (boxes / file).write_text(text.replace("{}", "9"))
    document = run(boxes, file, status=1)
    assert document["tasks"][0]["error"] == "it ended with status 9"


@PODMAN
def test_volumes_and_settings_in_an_image(boxes: Project) -> None:
    (boxes / "data").mkdir()
    (boxes / "data" / "words").write_text("from a volume")
    (boxes / "pipeline-platform.toml").write_text(MAPPING)
    file = alone(boxes, 'f"cp /somewhere/words {data.path}; echo -n $MODE > {out}"')
    text = (boxes / file).read_text().replace("    one()", MOUNTED)
    (boxes / file).write_text(f"from kfp import kubernetes\n{text}")
    assert tasks(run(boxes, file))["one"]["outputs"] == {"out": "fast"}
    assert boxes.command("cat", "r1/one:data").stdout == b"from a volume"
    (boxes / "data" / "words").write_text("another")
    run(boxes, file)
    assert boxes.command("cat", "r2/one:data").stdout == b"another"


def test_cancel_removes_the_container(boxes: Project, daemon: Daemon) -> None:
    file = alone(boxes, 'f"trap exit TERM; echo x > {data.path}; while :; do sleep 0.1; done"')
    _canceled(boxes, file, begun=lambda: any((boxes / ".clew").glob("cache/containers/*/data")))
    assert daemon("ps", "--all", "--quiet") == ""


@PODMAN
def test_containerised_python_in_its_image(boxes: Project, daemon: Daemon, tmp_path: Path) -> None:
    """As the SDK builds it: the module, what it imports and the file that names it are there."""
    built = tmp_path / "built"
    built.mkdir()
    (built / "adding.py").write_text(MODULE)
    (built / "helping.py").write_text("WORDS = 'helped in an image'\n")
    (built / "kfp_config.ini").write_text("[Components]\nadd = adding.py\n")
    (boxes / "adding.py").write_text(MODULE)
    error = run(boxes, "adding.py", status=2)["error"]
    assert "example.org/built:1 is not on this machine" in error["message"]
    daemon.python_image("example.org/built:1", built)
    document = run(boxes, "adding.py", "-p", "a=5")
    assert document["outputs"] == {"Output": 7}
    assert boxes.command("cat", "r1/add:made").stdout == b"helped in an image"
    assert states(run(boxes, "adding.py", "-p", "a=5")) == {"reused"}


def _canceled(project: Project, *words: str, begun: Callable[[], bool]) -> None:
    """Run until it has begun, and interrupt it then."""
    heard = ["env", "--default-signal=INT"]  # in the background interrupts are ignored
    with subprocess.Popen(
        [*heard, *CLEW, "pipeline", "run", *words],
        cwd=project.folder,
        env=project.environment,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_until("the start of the task", begun)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
