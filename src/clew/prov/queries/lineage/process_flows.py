"""Follow what processes pass to each other without a file: by pipes, sockets, fork and exec."""

from clew.prov.queries.cluster.cluster_walk import Join
from clew.prov.queries.executions import WORKER
from clew.prov.queries.lineage.lineage_sql import FOREVER, LineageQueries

_NUMBER, _NAME = 2, 9
"""Columns of `LineageQueries.activities`."""
_INSTANT_FLOWS = frozenset({"fork", "exec"})
"""Means that pass all data at once; a pipe may pass more later."""


class ProcessFlows:
    """The flows that one walk follows, in its direction."""

    def __init__(self, steps: LineageQueries, *, up: bool, everything: bool, join: Join) -> None:
        self.workers: dict[int, int] = {}
        """By task: the worker it was forked from, which is not drawn."""
        self._steps = steps
        self._up = up
        self._everything = everything
        self._join = join

    def follow(self, activities: dict[int, int]) -> dict[int, int]:
        """The other ends of pipes and sockets, with the bounds that hold there."""
        bounds: dict[int, int] = {}
        flows = (self._steps.senders if self._up else self._steps.receivers)(activities)
        workers = self._find_workers({sender for _, sender, _, via in flows if via == "fork"})
        for receiver, sender, at, via in flows:
            if sender in workers:
                self.workers[receiver] = sender
                continue
            near, far = (receiver, sender) if self._up else (sender, receiver)
            at_once = via in _INSTANT_FLOWS
            if at_once and (at > activities[near] if self._up else at < activities[near]):
                continue
            self._join(sender, receiver, "informed", via=via)
            bound = at if at_once else FOREVER if self._up else -1
            known = bounds.get(far, bound)
            bounds[far] = max(known, bound) if self._up else min(known, bound)
        return bounds

    def _find_workers(self, activities: set[int]) -> set[int]:
        """The workers of pipelines among these. They are part of what tasks are made of: of a task,
        a user wants to see the task's own files."""
        if self._everything or not self._up or not activities:
            return set()
        rows = self._steps.activities(activities)
        return {key for key, row in rows.items() if row[_NAME] == WORKER and row[_NUMBER] == 1}
