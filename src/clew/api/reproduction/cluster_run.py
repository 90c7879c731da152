"""Run the stages of a plan in a scratch namespace."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import structs

from clew import __version__
from clew.api.reproduction.current_peers import find_peer_change
from clew.api.reproduction.object_access import ObjectAccess, remove_buckets
from clew.api.reproduction.peer_checks import check_peers
from clew.api.reproduction.plan_report import PlannedReproduction, add_doubts, report
from clew.api.reproduction.preparation import Prepared, PreparedPod, RunOptions, prepare
from clew.api.reproduction.record_reader import RecordReader
from clew.api.reproduction.secret_checks import check_secrets
from clew.api.reproduction.volume_access import VolumeAccess
from clew.documents.ids import Locator
from clew.documents.lineage.reproduction import Reproduction
from clew.errors import ClewError
from clew.kube.objects import dig
from clew.kube.scratch import manifests, pod_run
from clew.kube.scratch.pod_run import PodEnd
from clew.kube.scratch.scratch_client import ScratchClient
from clew.kube.scratch.scratch_space import ScratchSpace, remove_abandoned
from clew.replay.pods.pod_divergence import StageResult
from clew.replay.pods.scratch_pod import ScratchPod
from clew.replay.pods.stages import Expected

HELPER_IMAGE = f"docker.io/clew/clew:{__version__}"
_LOG_LINES, _LOG_TEXT = 5, 300


def reproduce_on_cluster(
    record: RecordReader,
    planned: PlannedReproduction,
    options: RunOptions,
    *,
    client: ScratchClient,
    namespace: str | None,
    image: str | None,
    s3: Mapping[str, str],
    say: Callable[[str], None],
) -> Reproduction:
    """Run the plan in a scratch namespace, and remove everything that was created for it."""

    def remove(names: list[str]) -> bool:
        left = remove_buckets(names, s3)
        for text in left:
            say(f"{text}. Its Lease stays, and the next command tries again")
        return not left

    for abandoned in remove_abandoned(client, namespace, remove_buckets=remove):
        say(f"removed {abandoned}, which a killed command left")
    stages = planned.stages.stages
    document = add_doubts(planned.document, check_secrets(client, stages))
    document = add_doubts(
        document,
        check_peers(stages, options, find_change=lambda peer: find_peer_change(client, peer)),
    )
    space = ScratchSpace(client, namespace)
    checked = prepare(record, planned.stages, options, space.space.name)
    problems = tuple(checked.list_problems())
    if problems:
        return structs.replace(document, not_reproduced=(*problems, *document.not_reproduced))
    space.buckets = len(checked.buckets)
    with space:  # the Lease that it has now gives the buckets their names
        owner = manifests.bucket_owner(space.space.lease)
        prepared = prepare(record, planned.stages, options, owner)

        def keep_lease(text: str) -> None:
            say(f"{text}. The namespace {space.space.namespace} stays, for the next command")
            space.is_kept = True

        objects = ObjectAccess(prepared.buckets, s3, report_left=keep_lease)
        run = ClusterRun(
            client=client,
            space=space,
            volumes=VolumeAccess(client, space, image or HELPER_IMAGE),
            objects=objects,
            record=record,
            options=options,
            say=say,
        )
        with objects:
            results = run.run(prepared)
    return report(document, results)


@dataclass(frozen=True)
class ClusterRun:
    """One reproduction in a space that is open."""

    client: ScratchClient
    space: ScratchSpace
    volumes: VolumeAccess
    objects: ObjectAccess
    record: RecordReader
    options: RunOptions
    say: Callable[[str], None]

    def run(self, prepared: Prepared) -> list[StageResult]:
        """Run each Pod after the one before; none after one that failed."""
        self._create_objects(prepared)
        results: list[StageResult] = []
        left: tuple[Expected, ...] = ()
        ended: PodEnd | None = None
        for number, one in enumerate(prepared.pods):
            digests = self._transfer(number, one, left)
            if ended is not None:
                results.append(self._conclude(prepared.pods[number - 1], ended, digests))
            self.say(f"run {one.stage.pod.name} ({number + 1} of {len(prepared.pods)})")
            ended = self._run_pod(one)
            left = one.stage.expect
            if ended.problem is not None:
                break
        if ended is not None:
            last = prepared.pods[len(results)]
            digests = self._transfer(len(prepared.pods), None, left)
            results.append(self._conclude(last, ended, digests))
        return results

    def _create_objects(self, prepared: Prepared) -> None:
        if not self.options.network:
            self.space.add(manifests.make_isolation("isolated", self.space.space))
        for made in prepared.objects:
            self.space.add(made)
        for name, size in prepared.claims.items():
            self.space.add(manifests.make_claim(name, size=str(size), storage_class=None))
        self.objects.make_buckets()

    def _transfer(
        self, number: int, following: PreparedPod | None, left: Sequence[Expected]
    ) -> dict[Locator, str | None]:
        """Hash what the Pod before left, and restore what the following one needs."""
        stage = following.stage if following else None
        restore = stage.restore if stage else ()
        on_volumes = [one for one in left if not one.place.is_object]
        in_buckets = [one for one in left if one.place.is_object]
        digests = self.volumes.transfer(
            self.record,
            number=number,
            restore=[one for one in restore if not one.place.is_object],
            directories=stage.directories if stage else (),
            expect=on_volumes,
        )
        found = dict(zip((one.place.locator for one in on_volumes), digests, strict=True))
        hashed = self.objects.hash(in_buckets)
        found |= zip((one.place.locator for one in in_buckets), hashed, strict=True)
        self.objects.restore(self.record, [one for one in restore if one.place.is_object])
        return found

    def _run_pod(self, one: PreparedPod) -> PodEnd:
        name = str(one.pod.manifest["metadata"]["name"])
        end = self._await_pod(name, one.pod)
        if end.image_gone:
            self.space.delete_pod(name)
            end = self._await_pod(name, one.pulled)
        if end.problem is None:
            return end
        why = end.problem
        if end.status is not None:
            why = f"{why}: {self._read_log(name, one)}".rstrip(": ")
        return PodEnd(end.status, why, end.node, end.images, end.image_gone)

    def _await_pod(self, name: str, pod: ScratchPod) -> PodEnd:
        self.space.add(pod.manifest)
        namespace = self.space.space.namespace
        return pod_run.await_end(self.client, namespace, name, seconds=self.options.deadline)

    def _read_log(self, name: str, one: PreparedPod) -> str:
        """The end of what the Pod's first container printed, without the given secrets."""
        container = str(dig(one.pod.manifest["spec"]["containers"][0], "name"))
        try:
            text = self.client.read_log(self.space.space.namespace, name, container, _LOG_LINES)
        except ClewError:
            return ""
        return self.options.mask(text.encode(errors="replace"))[-_LOG_TEXT:]

    def _conclude(
        self, one: PreparedPod, end: PodEnd, digests: dict[Locator, str | None]
    ) -> StageResult:
        return StageResult(
            stage=one.stage,
            digests=digests,
            problem=end.problem,
            left_out=one.pod.left_out,
            hardware=self.record.load_hardware(end.node, None),
            recorded_hardware=self.record.load_hardware(one.stage.pod.node, one.stage.pod.ended),
        )
