"""The Pods of a plan, rewritten for a scratch namespace, and the objects they need there.

Everything that would keep a Pod from running is found here, before anything is created.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from clew.api.reproduction.record_reader import RecordReader
from clew.documents.ids import Digest
from clew.documents.lineage.reproduction import NotReproduced
from clew.errors import NotAllowed, SecretsNeeded
from clew.kube.objects import Json
from clew.kube.scratch import manifests
from clew.redaction.masking import mask
from clew.replay.pods import bucket_names, stages
from clew.replay.pods.scratch_namespace import ScratchNamespace, secret_key
from clew.replay.pods.scratch_pod import ScratchPod, rewrite_pod
from clew.replay.pods.stages import Stage, Stages

_SECRET = "given"  # noqa: S105 (the name of an object)
_MAX_CONFIG_MAP = 4 << 20
_SHORTEST_LINE = 8


class _ConfigMapData(msgspec.Struct):
    data: dict[str, str] = {}
    binary: dict[str, str] = msgspec.field(default_factory=dict, name="binaryData")


@dataclass(frozen=True)
class PreparedPod:
    """`pod` runs where its images are on the node already, `pulled` where a registry has them: a
    record does not say whether a digest is that of an image or of its place in a registry."""

    stage: Stage
    pod: ScratchPod
    pulled: ScratchPod
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Prepared:
    pods: tuple[PreparedPod, ...]
    objects: tuple[Json, ...]
    """ConfigMaps and the Secret."""
    claims: Mapping[str, int]
    buckets: Mapping[str, str]

    def list_problems(self) -> Iterator[NotReproduced]:
        for one in self.pods:
            for problem in one.problems:
                yield NotReproduced(what=f"Pod {one.stage.pod.name}", why=problem)


@dataclass(frozen=True)
class RunOptions:
    """What the caller allows and gives. `given`: secrets, by variable or path."""

    given: Mapping[str, str]
    network: bool = False
    deadline: int = 3600

    def mask(self, text: bytes) -> str:
        """What a Pod printed, without the given values, and without the lines of those that have
        several: the end of what it printed may begin within one."""
        values = [value.encode(errors="surrogateescape") for value in self.given.values()]
        values += [
            line for value in values for line in value.splitlines() if len(line) >= _SHORTEST_LINE
        ]
        longest_first = sorted(filter(None, values), key=len, reverse=True)
        return mask(longest_first, text).decode(errors="replace").strip()


def prepare(record: RecordReader, plan: Stages, options: RunOptions, owner: str) -> Prepared:
    """`owner`: of the fresh buckets, in their names. SecretsNeeded if values are missing."""
    buckets = {
        name: manifests.bucket_name(owner, number)
        for number, name in enumerate(sorted(plan.buckets))
    }
    data = {
        (stage.facet.namespace, name, digest): _read_config_map(record, digest)
        for stage in plan.stages
        for name, digest in stage.config_maps.items()
    }
    pods = []
    for number, stage in enumerate(plan.stages, 1):
        config_maps = {
            name: stages.config_map_name(stage.facet.namespace, name, digest)
            for name, digest in stage.config_maps.items()
        }
        scratch = ScratchNamespace(
            name=stages.pod_name(number, stage.pod),
            labels={},
            deadline=options.deadline,
            images=stage.pod.images,
            claims=stage.claims,
            config_maps=config_maps,
            secret=_SECRET,
            given=frozenset(options.given),
            buckets=buckets,
        )
        pod, pulled = (
            rewrite_pod(stage.facet.spec, scratch, host=stage.pod.name, by_id=by_id)
            for by_id in (True, False)
        )
        texts = [msgspec.json.encode(stage.facet.spec).decode()]
        for name, digest in stage.config_maps.items():
            texts += data[stage.facet.namespace, name, digest].data.values()
        problems = (*stage.problems, *pod.problems, *_check_buckets(stage, texts, options))
        pods.append(PreparedPod(stage, pod, pulled, problems))
    _require_secrets(pods)
    objects = [
        manifests.make_config_map(
            stages.config_map_name(*key),
            {name: bucket_names.replace(text, buckets) for name, text in one.data.items()},
            one.binary,
        )
        for key, one in data.items()
    ]
    if options.given:
        values = {
            secret_key(name): b64encode(text.encode(errors="surrogateescape")).decode()
            for name, text in options.given.items()
        }
        objects.append(manifests.make_secret(_SECRET, values))
    return Prepared(tuple(pods), tuple(objects), plan.claims, buckets)


def _read_config_map(record: RecordReader, digest: Digest) -> _ConfigMapData:
    text = b""
    for piece in record.read(digest):
        text += piece
        if len(text) > _MAX_CONFIG_MAP:
            raise NotAllowed("the recorded data of a ConfigMap is larger than Kubernetes allows")
    try:
        found = msgspec.json.decode(text, type=_ConfigMapData)
        for value in found.binary.values():
            b64decode(value, validate=True)
    except ValueError as error:  # msgspec's and base64's errors are ones
        raise NotAllowed(f"the recorded data of a ConfigMap is not valid: {error}") from error
    return found


def _check_buckets(stage: Stage, texts: Sequence[str], options: RunOptions) -> Iterator[str]:
    """A bucket whose name is not in the settings of the Pod is in its image: it would read and
    write the recorded bucket again."""
    used = stages.list_buckets(stage.pod)
    for name in sorted(used):
        if not any(bucket_names.contains(text, name) for text in texts):
            yield f"the name of the bucket {name} is not among its settings: it may be in its image"
    if used and not options.network:
        yield f"it needs the network for the bucket {min(used)}: --network"


def _require_secrets(pods: Sequence[PreparedPod]) -> None:
    missing: dict[str, None] = {}
    for one in pods:
        missing |= dict.fromkeys(one.pod.missing_secrets)
    if missing:
        names = [name for name in missing if " " not in name and not name.endswith("/FILE")]
        hints = [f"--secret {name}=FILE" if "/" in name else f"--secret {name}" for name in names]
        raise SecretsNeeded(
            f"the Pods need secrets that are not recorded: {', '.join(missing)}",
            hint="give them by name: " + (" ".join(hints) or "--secret NAME"),
            names=names,
        )
