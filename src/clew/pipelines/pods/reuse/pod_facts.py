"""Check what the processes of an earlier task in a Pod depended on, beside its declared inputs.

Files of its image hold if the image is the same. Files that the kubelet or Clew puts into every Pod
do not count. Anything else, such as a volume that an admission webhook added, cannot be looked at
from here: then the task runs.
"""

import os

from clew.errors import ClewError
from clew.pipelines.pods.pod_locators import is_in_every_pod
from clew.prov.graph import Graph
from clew.prov.locators import path_of
from clew.prov.queries.execution_record import ExecutionRecord, load_record
from clew.prov.queries.pipelines.finished_tasks import FinishedTask
from clew.replay.reuse.reuse_types import ReuseCheck

BASIS = "only declared inputs, image and outputs were compared"
_UNSEEN = frozenset({"container", "trace"})
"""Gaps of a record that does not have all its processes did."""


def check_processes(graph: Graph, done: FinishedTask) -> ReuseCheck:
    """The image of the task is known to be the same."""
    try:
        record = load_record(graph, done.execution, looks=False)
    except ClewError:
        return ReuseCheck("its record is gone")
    if any(gap.what in _UNSEEN for gap in record.gaps):
        return ReuseCheck(None, 0, BASIS)
    unknown, checked = _compare_inputs(record, done)
    if unknown is not None:
        return ReuseCheck(f"it read {unknown}, which is not a file of its image")
    return ReuseCheck(None, checked)


def _compare_inputs(record: ExecutionRecord, done: FinishedTask) -> tuple[str | None, int]:
    """The first file that cannot be compared, and how many are the same because the image is."""
    images = {digest.partition(":")[2] for digest in done.image_digests}
    made = {edge.version for edge in record.generated}
    changed = {record.versions[version].locator for version in made}
    changed |= {record.versions[edge.version].locator for edge in record.invalidated}
    checked = 0
    for version in {edge.version for edge in record.used} - made:
        locator = record.versions[version].locator
        path = path_of(locator)
        if path is None or locator in changed:
            continue  # an artifact, which is in its key, or a peer; or a file that it changed
        if locator.removeprefix("file://").partition("/")[0] in images:
            checked += 1
        elif not is_in_every_pod(path):
            return os.fsdecode(path), checked
    return None, checked
