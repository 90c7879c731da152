"""Comparing two executions of a project."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from clew.documents.comparisons.differences import Divergence, ExecutionDiff, PodDiff
from clew.documents.ids import Digest
from clew.errors import ClewError, NotFound, UsageError
from clew.prov.queries.execution_record import ExecutionRecord, load_record
from clew.replay.compare.output_comparison import Comparison, ReadContent, compare
from clew.replay.compare.volatile_rules import load_rules
from clew.store import Store

if TYPE_CHECKING:
    from clew.api.project_context import ProjectState
    from clew.prov.queries.targets import Target

CONFIRM_SECONDS = 60.0
"""For how many seconds the cause of a difference is looked for."""


@contextmanager
def open_contents(
    project: ProjectState, *, mask: Callable[[bytes], bytes] = lambda content: content
) -> Iterator[ReadContent]:
    """The bytes of contents, where they are stored, after `mask` was applied to them."""
    with Store(project.directory.store) as store:

        def read(digest: Digest) -> bytes | None:
            try:
                return mask(store.read_whole(digest))
            except ClewError:
                return None

        yield read


def explain_divergence(
    project: ProjectState,
    a: ExecutionRecord,
    b: ExecutionRecord,
    comparison: Comparison,
    *,
    seconds: float,
) -> Divergence | None:
    """Which process diverged first, and why; None where nothing that matters differs.

    For at most `seconds` it is tried which causes can be confirmed.
    """
    from clew.replay.explain.confirmation import confirm_causes
    from clew.replay.explain.diagnostic_runner import DiagnosticRunner
    from clew.replay.explain.divergence import find_divergence

    with open_contents(project) as read:
        found = find_divergence(a, b, comparison, read, load_rules(project.directory.ignore))
        if found is not None and seconds:
            # where no experiment can be made, on a full disk say, candidates stay candidates
            with (
                suppress(ClewError, OSError),
                DiagnosticRunner(
                    project.directory, seconds=seconds, values=project.secrets
                ) as runner,
            ):
                found = confirm_causes(found, comparison.significant, runner)
    return found.describe() if found else None


def diff(project: ProjectState, a: str, b: str, *, confirm: bool) -> ExecutionDiff | PodDiff:
    """How `b` differs from `a`: two executions, or two Pods."""
    pods = _find_pods(project, a, b)
    if pods is not None:
        from clew.prov.queries.cluster.pod_diff import diff_pods

        return diff_pods(project.graph, *pods)
    from clew.replay.compare.execution_diff import diff_executions

    known = load_rules(project.directory.ignore)
    one, other = load_record(project.graph, a), load_record(project.graph, b)
    with open_contents(project) as read:
        comparison = compare(one, other, read, known)
        seconds = CONFIRM_SECONDS if confirm else 0
        divergence = explain_divergence(project, one, other, comparison, seconds=seconds)
        return diff_executions(one, other, comparison, read, known, divergence)


def _find_pods(project: ProjectState, a: str, b: str) -> tuple[Target, Target] | None:
    """The Pods that both texts name; None if neither names one."""
    from clew.prov.queries.cluster.names import has_cluster
    from clew.prov.queries.cluster.pod_diff import is_pod

    if not has_cluster(project.graph):
        return None
    found = [_find_target(project, text) for text in (a, b)]
    pods = [target for target in found if target is not None and is_pod(project.graph, target)]
    if not pods:
        return None
    if len(pods) < len(found):
        raise UsageError(
            "a Pod can only be compared with a Pod", hint="clew diff pod/NS/A pod/NS/B"
        )
    return pods[0], pods[1]


def _find_target(project: ProjectState, text: str) -> Target | None:
    from clew.api.local.versions import find

    try:
        return find(project, text)
    except NotFound:
        return None
