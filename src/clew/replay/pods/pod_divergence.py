"""Compare what the Pods of a reproduction left with the record, and say what diverged first.

The stages ran in order, so the first one with another output had equal inputs: what else was
different there is a possible cause. Only recorded facts count, and none of them is confirmed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.documents.comparisons.differences import Cause
from clew.documents.ids import Locator
from clew.documents.lineage.reproduction import OutputDifference, PodDivergence
from clew.replay.pods.stages import Stage

_HARDWARE = ("cpu", "gpu", "driver", "kernel")
"""Causes that are called as the facet of the node is."""


@dataclass(frozen=True)
class StageResult:
    """What came of a Pod. `digests`: of what it left, None where nothing is."""

    stage: Stage
    digests: Mapping[Locator, str | None]
    problem: str | None = None
    """Why it did not succeed."""
    left_out: tuple[str, ...] = ()
    hardware: Mapping[str, Any] = field(default_factory=dict)
    """What is known of the node where it ran now, and of the one where it was recorded."""
    recorded_hardware: Mapping[str, Any] = field(default_factory=dict)


def list_differences(results: Sequence[StageResult]) -> list[OutputDifference]:
    return [
        OutputDifference(
            pod=result.stage.pod.name,
            path=one.place.locator,
            kind="content" if now else "missing",
            a=one.digest,
            b=now,
        )
        for result in results
        for one in result.stage.expect
        if (now := result.digests.get(one.place.locator)) != one.digest
    ]


def count_compared(results: Sequence[StageResult]) -> int:
    return sum(len(result.stage.expect) for result in results)


def find_divergence(results: Sequence[StageResult]) -> PodDivergence | None:
    """The first Pod that failed or left something else; None if there is none."""
    for result in results:
        if result.problem is not None or list_differences([result]):
            return PodDivergence(pod=result.stage.pod.name, causes=tuple(_find_causes(result)))
    return None


def _find_causes(result: StageResult) -> list[Cause]:
    pod = result.stage.pod
    causes = []
    if result.problem is not None:
        causes.append(_candidate("failed", result.problem))
    causes += [
        _candidate("touched by hand", f"{touch.how} by {touch.by} while it ran")
        for touch in pod.touched
    ]
    causes += _compare_hardware(result)
    causes += [_candidate("left out", f"the reproduction lacks {one}") for one in result.left_out]
    causes += [
        _candidate("variable", f"the value of the Secret {name} comes from the caller")
        for name in sorted(result.stage.secrets)
    ]
    causes += [_candidate("network", f"it talked to {peer.locator}") for peer in pod.peers]
    causes += [
        _candidate("input", f"no witness recorded which files it read on {found.locator}")
        for found in pod.inputs
        if found.locator in pod.volumes
    ]
    if not causes:
        causes = [
            _candidate("clock", "it may depend on the time"),
            _candidate("random", "it may depend on randomness"),
        ]
    return causes


def _compare_hardware(result: StageResult) -> list[Cause]:
    """What is known of both nodes and differs; another node alone is no cause."""
    then, now = result.recorded_hardware, result.hardware
    return [
        _candidate(
            facet if (facet := name.partition(".")[0]) in _HARDWARE else "hardware",
            f"{name} was {str(then[name])[:100]}, and is {str(now[name])[:100]}",
        )
        for name in then
        if name != "node" and name in now and then[name] != now[name]
    ]


def _candidate(cause: str, detail: str) -> Cause:
    return Cause(cause=cause, detail=detail, confidence="candidate")
