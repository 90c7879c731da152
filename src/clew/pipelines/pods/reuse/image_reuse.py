"""Decide whether a task that runs in an image can be reused, on either side: in a container of this
machine, or as a Pod.

Equal keys mean equal code, parameters, contents of inputs, variables and names of images. Beyond
that the digest of the image, the outputs and, where they were recorded, the files that the
processes read must be the same. So an earlier task counts wherever it ran, and its outputs are
copied to where the tasks of this run find them. A task that ran without an image never counts:
nobody can compare the files of its machine with those of an image.
"""

from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from clew.pipelines.engine.run_state import Node
from clew.pipelines.pods.artifact_store import SCHEME, ArtifactStore
from clew.pipelines.pods.reuse import pod_facts, result_copies
from clew.pipelines.pods.reuse.pod_reuse import StoredArtifacts
from clew.pipelines.runner.task_reuse import Bring, TaskReuse, Verdict
from clew.pipelines.runner.unchanged_check import LocalArtifacts
from clew.pipelines.spec.values import Artifact
from clew.prov.queries.pipelines.finished_tasks import FinishedTask
from clew.replay.reuse.reuse_types import ReuseCheck


class ImageTask(Struct, frozen=True):
    """A task that runs in an image."""

    node: Node
    image: str
    """Its name."""
    variables: Mapping[str, str]
    check_image: Callable[[Container[str]], ReuseCheck]
    """Compares the image of now with one that has these digests."""


class ImageReuse:
    """The tasks of one run that run in images."""

    def __init__(self, reuse: TaskReuse, local: LocalArtifacts, store: ArtifactStore) -> None:
        self._reuse = reuse
        self._local = local
        self._store = store
        self._stored = StoredArtifacts(store)

    def decide(self, task: ImageTask, bring: Bring, *, reuse: bool) -> Verdict:
        """`bring`: `upload` or `download`, with the place of the task."""
        more = {"image": task.image, "settings": sorted(task.variables.items())}
        return self._reuse.decide(
            task.node,
            lambda done: self._check(task, done),
            self._identify,
            more=more,
            reuse=reuse,
            bring=bring,
        )

    def upload(self, done: FinishedTask, place: str) -> FinishedTask:
        """The task with its outputs in the bucket."""
        if result_copies.is_in_bucket(done):
            return done
        return result_copies.upload_outputs(self._store, done, place)

    def download(self, done: FinishedTask, directory: Path) -> FinishedTask:
        """The task with its outputs on this machine."""
        if not result_copies.is_in_bucket(done):
            return done
        result = self._stored.read_result(done.directory)
        return result_copies.download_outputs(self._store, result, done, directory)

    def _check(self, task: ImageTask, done: FinishedTask) -> ReuseCheck:
        in_bucket = result_copies.is_in_bucket(done)
        image = task.check_image(done.image_digests)
        if image.why_not is not None:
            return image
        outputs = (self._stored if in_bucket else self._local).check_outputs(done)
        if outputs.why_not is not None:
            return outputs
        checked = image.checked + outputs.checked
        if not done.pod:
            return ReuseCheck(None, checked, pod_facts.BASIS)
        found = pod_facts.check_processes(self._reuse.graph, done)
        return found._replace(checked=checked + found.checked)

    def _identify(self, artifact: Artifact) -> Any:
        in_bucket = str(artifact["uri"]).startswith(SCHEME)
        return (self._stored if in_bucket else self._local).identify(artifact)
