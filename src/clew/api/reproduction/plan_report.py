"""The plan of a reproduction, and its report.

What the record alone tells is found here. The Pods run on a cluster (`cluster_run`) or in
containers of this machine (`local_run`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from msgspec import structs

from clew.api.reproduction.record_reader import RecordReader
from clew.documents.lineage.reproduction import (
    NotReproduced,
    PlannedPod,
    Reproduction,
    SkippedPod,
)
from clew.replay.pods.pod_divergence import (
    StageResult,
    count_compared,
    find_divergence,
    list_differences,
)
from clew.replay.pods.pod_plan import PodPlan, plan_pods
from clew.replay.pods.stages import Stage, Stages, plan_stages


@dataclass(frozen=True)
class PlannedReproduction:
    """A plan, before anything runs."""

    document: Reproduction
    stages: Stages


def add_doubts(document: Reproduction, found: Iterable[NotReproduced]) -> Reproduction:
    """The document with what else is not as it was."""
    return structs.replace(document, not_reproduced=(*document.not_reproduced, *found))


def plan_reproduction(
    record: RecordReader, target: str, *, as_of: datetime | None = None
) -> PlannedReproduction:
    ancestry = record.find_ancestry(target, as_of)
    plan = plan_pods(ancestry)
    pods = [choice.pod for choice in plan.run]
    stages = plan_stages(pods, record.load_facets([pod.uid for pod in pods]))
    return PlannedReproduction(_describe_plan(target, plan, stages), stages)


def report(document: Reproduction, results: Sequence[StageResult]) -> Reproduction:
    """The document with what came of the Pods."""
    differences = tuple(list_differences(results))
    failed = [result for result in results if result.problem is not None]
    compared = count_compared(results)
    verdict = document.verdict
    if differences or failed:
        verdict = "different"
    elif compared:
        verdict = "identical"
    return structs.replace(
        document,
        verdict=verdict,
        compared=compared,
        differences=differences,
        divergence=find_divergence(results),
        not_reproduced=(
            *document.not_reproduced,
            *(
                NotReproduced(what=f"Pod {result.stage.pod.name}", why=str(result.problem))
                for result in failed
            ),
        ),
    )


def _describe_plan(target: str, plan: PodPlan, stages: Stages) -> Reproduction:
    return Reproduction(
        target=target,
        plan=tuple(
            PlannedPod(
                pod=choice.pod.name,
                namespace=choice.pod.namespace,
                uid=choice.pod.uid,
                image=_describe_image(stage),
                why=choice.why,
            )
            for choice, stage in zip(plan.run, stages.stages, strict=True)
        ),
        skipped=tuple(
            SkippedPod(
                pod=choice.pod.name,
                namespace=choice.pod.namespace,
                uid=choice.pod.uid,
                why=choice.why,
            )
            for choice in plan.skipped
        ),
        pods_by_volume=plan.pods_by_volume,
        pods_by_file=plan.pods_by_file,
        not_reproduced=tuple(_list_doubts(stages.stages)),
    )


def _describe_image(stage: Stage) -> str:
    return ", ".join(dict.fromkeys(stage.pod.images.values()))


def _list_doubts(stages: Sequence[Stage]) -> Iterator[NotReproduced]:
    """What the record itself says that cannot be as it was; `peer_checks` has what Pods talked
    to."""
    for stage in stages:
        name = f"Pod {stage.pod.name}"
        for touch in stage.pod.touched:
            why = f"{touch.by} touched it by hand ({touch.how}): what that did is not recorded"
            yield NotReproduced(what=name, why=why)
        for locator in stage.unknown:
            yield NotReproduced(what=locator, why="no digest of it was recorded to compare with")
