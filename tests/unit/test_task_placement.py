"""`clew.place` writes what the scheduler reads, and needs the kfp SDK alone."""

import email
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml
from kfp import compiler, dsl, kubernetes

import clew
from clew import task_placement
from clew.placement.request import KINDS, parse_request

SDK = Path(__file__).parents[2] / "sdk"


@dsl.component(base_image="python:3.11")
def answer(question: str) -> str:
    return question


def compile_metadata(tmp_path: Path, **given: object) -> dict[str, dict[str, str]]:
    """The labels and annotations of a placed task in the compiled pipeline."""

    @dsl.pipeline
    def pipeline() -> None:
        task = answer(question="why")
        kubernetes.add_pod_label(task, "team", "blue")
        clew.place(task, **given)  # type: ignore[arg-type]
        kubernetes.add_pod_annotation(task, "owner", "me")

    file = tmp_path / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(file))
    _, platform = yaml.safe_load_all(file.read_text())
    (executor,) = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"].values()
    found: dict[str, dict[str, str]] = executor["podMetadata"]
    return found


def test_the_scheduler_reads_one_location(tmp_path: Path) -> None:
    found = compile_metadata(tmp_path, near="HOME-EDGE", kind="Serving", max_ms=12.5)
    request = parse_request(found["labels"], found["annotations"])
    assert request is not None
    assert (request.shares, request.max_ms) == ((("HOME-EDGE", 1.0),), 12.5)
    assert (found["labels"]["team"], found["annotations"]["owner"]) == ("blue", "me")


def test_the_scheduler_reads_shares(tmp_path: Path) -> None:
    found = compile_metadata(tmp_path, near={"HOME": 3, "LAB": 1})
    request = parse_request(found["labels"], found["annotations"])
    assert request is not None
    assert dict(request.shares) == {"HOME": 0.75, "LAB": 0.25}


@pytest.mark.parametrize("given", [{"near": "HOME", "kind": "Train"}, {"near": ""}, {"near": {}}])
def test_mistakes_are_refused(tmp_path: Path, given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must"):
        compile_metadata(tmp_path, **given)


def test_the_kinds_are_those_of_the_scheduler() -> None:
    assert task_placement.KINDS == KINDS


def test_the_package_for_authors_needs_kfp_alone(tmp_path: Path) -> None:
    source = shutil.copytree(SDK, tmp_path / "source")
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", tmp_path, source], check=True)
    (wheel,) = tmp_path.glob("clew_kfp-*.whl")
    with zipfile.ZipFile(wheel) as files:
        (metadata,) = (name for name in files.namelist() if name.endswith("/METADATA"))
        required = email.message_from_bytes(files.read(metadata)).get_all("Requires-Dist")
        module = files.read("clew_kfp.py")
    assert [one.partition(">")[0] for one in required or ()] == ["kfp"]
    assert module == Path(task_placement.__file__).read_bytes()
