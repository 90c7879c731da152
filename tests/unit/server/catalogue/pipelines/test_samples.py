"""The sample pipelines: what they are, and when they are added."""

import subprocess
import sys
from pathlib import Path

from clew.pipelines.runs import pipeline_specs
from clew.pipelines.spec import parser
from clew.prov.graph import Graph
from clew.server.catalogue.pipelines import pipelines, samples, summaries, versions
from clew.server.catalogue.pipelines.samples import DIRECTORY, add_samples
from clew.server.catalogue.pipelines.versions import Metadata


def names(graph: Graph) -> list[str]:
    return [pipeline.name for pipeline in summaries.list_pipelines(graph)[0]]


def test_they_are_what_the_examples_compile_to(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.sample_pipelines", str(tmp_path)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[5])
    compiled = {file.name: file.read_text() for file in tmp_path.iterdir()}
    kept = {file.name: file.read_text() for file in DIRECTORY.glob("*.yaml")}
    assert kept == compiled, "compile them again: python -m tools.sample_pipelines"


def test_each_is_added_once_and_can_run(graph: Graph) -> None:
    add_samples(graph)
    add_samples(graph)
    assert names(graph) == ["cifar10", "data-passing", "mnist", "taxi-tips"]
    taxi = next(one for one in summaries.list_pipelines(graph, "TAXI")[0])
    assert (taxi.sample, taxi.versions, taxi.runs) == ("examples/taxi", 1, 0)
    assert taxi.description == "Learn from some years, be judged by the next."
    assert taxi.latest
    for sample in summaries.list_pipelines(graph)[0]:
        version = versions.resolve(graph, sample.id, "")
        parser.parse_pipeline(pipeline_specs.text_of(graph, version.spec))


def test_a_deleted_sample_stays_deleted(graph: Graph) -> None:
    add_samples(graph)
    pipelines.delete(graph, pipelines.get_by_name(graph, "mnist").id, cascade=True)
    add_samples(graph)
    assert names(graph) == ["cifar10", "data-passing", "taxi-tips"]


def test_a_changed_sample_becomes_a_version(graph: Graph, tmp_path: Path) -> None:
    sample = tmp_path / "mnist.yaml"
    text = (DIRECTORY / "mnist.yaml").read_text()
    sample.write_text(text)
    add_samples(graph, tmp_path)
    sample.write_text(text.replace("learning rates to try", "learning rates"))
    add_samples(graph, tmp_path)
    add_samples(graph, tmp_path)
    (mnist,), total = summaries.list_pipelines(graph)
    assert (total, mnist.versions) == (1, 2)
    assert mnist.latest
    assert mnist.latest.name.startswith("mnist-")
    pipelines.delete(graph, mnist.id, cascade=True)
    sample.write_text(text)
    add_samples(graph, tmp_path)
    assert names(graph) == []


def test_a_pipeline_of_the_same_name_is_left_alone(graph: Graph) -> None:
    own = pipelines.create(graph, Metadata(name="mnist"), spec="own")
    add_samples(graph)
    assert pipelines.get_by_name(graph, "mnist").id == own
    assert versions.resolve(graph, own, "").name == "mnist"
    assert samples.TAG not in pipelines.get(graph, own).tags
