"""Run the stages of a plan in containers of this machine, with directories as volumes.

Needs a container runtime that has the images. A container gets no network unless the caller allows
it: then that of a bridge, so that the record does not reach what listens on this machine's loopback
addresses only. It gets no more rights than the runtime's usual ones. Its files are in a directory
that goes at the end.

The record is untrusted: none of its variables reaches the environment of the runtime's client.
"""

import io
import os
import subprocess
import threading
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from clew.api.reproduction.object_access import ObjectAccess, remove_buckets
from clew.api.reproduction.peer_checks import check_peers
from clew.api.reproduction.plan_report import PlannedReproduction, add_doubts, report
from clew.api.reproduction.preparation import Prepared, PreparedPod, RunOptions, prepare
from clew.api.reproduction.record_reader import RecordReader
from clew.api.reproduction.working_directory import (
    PREFIX,
    WorkingDirectory,
    is_abandoned,
    make_name,
    remove_abandoned,
)
from clew.documents.ids import Locator
from clew.documents.lineage.reproduction import NotReproduced, Reproduction
from clew.errors import ClewError
from clew.pipelines.tasks.containers.runtime import ContainerRuntime, find_runtime
from clew.replay.pods import volume_files_main
from clew.replay.pods.container_plan import VARIABLE, ContainerPlan, MountPlan, plan_containers
from clew.replay.pods.pod_divergence import StageResult
from clew.safe_path import SafeDirectory
from clew.store.errors import from_os

_SHOWN_TEXT = 300
_PIECE = 1 << 16
_TAIL = 1 << 18
"""More than is shown: a secret that is cut is not recognised."""


def reproduce_here(
    record: RecordReader,
    planned: PlannedReproduction,
    options: RunOptions,
    *,
    s3: Mapping[str, str],
    say: Callable[[str], None],
) -> Reproduction:
    runtime = find_runtime()
    if runtime is None:
        raise ClewError(
            "no container runtime responds on this machine",
            hint="start Docker or Podman (podman system service), or reproduce on a cluster",
        )
    _remove_abandoned(runtime, s3, say)
    name, owner = make_name()
    prepared = prepare(record, planned.stages, options, owner)
    problems = [*prepared.list_problems(), *_find_problems(prepared, runtime)]
    document = add_doubts(planned.document, check_peers(planned.stages.stages, options))
    if problems:
        return structs.replace(document, not_reproduced=(*problems, *document.not_reproduced))
    with (
        WorkingDirectory(name, prepared.buckets.values(), say) as directory,
        ObjectAccess(prepared.buckets, s3, report_left=directory.keep_list) as objects,
    ):
        run = LocalRun(runtime, directory.files, name, record, options, objects)
        return report(document, run.run(prepared, say))


def _find_problems(prepared: Prepared, runtime: ContainerRuntime) -> list[NotReproduced]:
    found = []
    for one in prepared.pods:
        what = f"Pod {one.stage.pod.name}"
        containers, problems = plan_containers(one.pod.manifest) if one.pod.manifest else ([], [])
        found += [NotReproduced(what=what, why=problem) for problem in problems]
        pulled, _ = plan_containers(one.pulled.manifest) if one.pulled.manifest else ([], [])
        for by_id, by_name in zip(containers, pulled, strict=True):
            if not any(runtime.digest(image.image) for image in (by_id, by_name)):
                why = f"the image {by_name.image} is not on this machine"
                found.append(NotReproduced(what=what, why=why))
    return found


def _remove_abandoned(
    runtime: ContainerRuntime, s3: Mapping[str, str], say: Callable[[str], None]
) -> None:
    """Remove what commands that were killed left here."""
    for name in runtime.names(PREFIX):
        if is_abandoned(name):
            runtime.remove(name)
    remove_abandoned(lambda buckets: remove_buckets(buckets, s3), say)


@dataclass
class LocalRun:
    runtime: ContainerRuntime
    root: Path
    name: str
    record: RecordReader
    options: RunOptions
    objects: ObjectAccess
    _data: dict[tuple[str, str], dict[str, bytes]] = field(default_factory=dict)
    """The data of ConfigMaps and the Secret, by kind and name."""
    _started: int = 0

    def run(self, prepared: Prepared, say: Callable[[str], None]) -> list[StageResult]:
        for made in prepared.objects:
            self._data[_kind_of(made)] = _data_of(made)
        for claim in prepared.claims:
            self._directory("claims", claim)
        self.objects.make_buckets()
        results = []
        for number, one in enumerate(prepared.pods, 1):
            say(f"run {one.stage.pod.name} ({number} of {len(prepared.pods)})")
            self._restore(one)
            problem = self._run_pod(one)
            results.append(StageResult(one.stage, self._hash(one), problem, one.pod.left_out))
            if problem is not None:
                break
        return results

    def _restore(self, one: PreparedPod) -> None:
        root = str(self.root / "claims")
        for restored in one.stage.restore:
            if restored.place.is_object:
                continue
            assert restored.digest is not None  # only objects have versions elsewhere
            content = b"".join(self.record.read(restored.digest))
            file = {
                "path": _encode(restored.place.container, restored.place.path),
                "size": len(content),
                "mode": restored.mode,
                "mtime": restored.mtime,
            }
            try:
                volume_files_main.restore(root, file, io.BytesIO(content))
            except OSError as error:  # such as a directory or a link where it belongs
                raise from_os(error, doing=f"restore {restored.place.locator}") from error
        for place in one.stage.directories:
            parts = volume_files_main.split_path(_encode(place.container, place.path))
            with volume_files_main.open_directory(root, parts, make=True):
                pass
        objects = [one for one in one.stage.restore if one.place.is_object]
        self.objects.restore(self.record, objects)

    def _hash(self, one: PreparedPod) -> dict[Locator, str | None]:
        found: dict[Locator, str | None] = {}
        for expected in one.stage.expect:
            place = expected.place
            if place.is_object:
                (found[place.locator],) = self.objects.hash([expected])
                continue
            algorithm = expected.digest.partition(":")[0]
            file = {"path": _encode(place.container, place.path), "algorithm": algorithm}
            hashed = volume_files_main.hash_file(str(self.root / "claims"), file)
            found[place.locator] = hashed["digest"]
        return found

    def _run_pod(self, one: PreparedPod) -> str | None:
        containers, _ = plan_containers(one.pod.manifest)
        pulled, _ = plan_containers(one.pulled.manifest)
        for by_id, by_name in zip(containers, pulled, strict=True):
            image = next(plan.image for plan in (by_id, by_name) if self.runtime.digest(plan.image))
            problem = self._run_container(replace(by_id, image=image), one)
            if problem is not None:
                return problem
        return None

    def _run_container(self, plan: ContainerPlan, one: PreparedPod) -> str | None:
        self._started += 1
        name = f"{self.name}-{self._started}"
        variables = self._variables(plan)
        file = self.root / f"variables-{self._started}"
        file.touch(mode=0o600)
        file.write_text("".join(f"{key}={value}\n" for key, value in variables.items()))
        words = self.runtime.command(
            plan.image,
            name=name,
            command=plan.command,
            arguments=plan.arguments,
            variables=(),
            mounts=[self._mount(mount, one) for mount in plan.mounts],
            network="bridge" if self.options.network else "none",
            options=[*_options(plan), "--env-file", str(file)],
        )
        try:
            status, printed = _run(words, self.options.deadline)
        except subprocess.TimeoutExpired:
            return f"its container {plan.name} did not end in {self.options.deadline} s"
        finally:
            self.runtime.remove(name)
        if status == 0:
            return None
        text = self.options.mask(printed)
        return f"its container {plan.name} ended with status {status}: {text[-_SHOWN_TEXT:]}"

    def _variables(self, plan: ContainerPlan) -> dict[str, str]:
        found: dict[str, str] = {}
        for prefix, name in plan.all_of:
            for key, value in self._data.get(("config", name), {}).items():
                found[prefix + key] = value.decode(errors="surrogateescape")
        found |= plan.values
        for variable, kind, name, key in plan.references:
            content = self._data.get((kind, name), {}).get(key)
            if content is not None:
                found[variable] = content.decode(errors="surrogateescape")
        for variable, text in found.items():
            if "\n" in text or "\r" in text or not VARIABLE.fullmatch(variable):
                raise ClewError(
                    f"the variable {variable} has several lines: no container gets it here",
                    hint="reproduce it on a cluster",
                )
        return found

    def _mount(self, mount: MountPlan, one: PreparedPod) -> tuple[str, str, bool]:
        """A path of this machine, its path in the container, and whether it is writable."""
        if mount.kind == "claim":
            place = self._directory("claims", mount.name)
        else:
            place = self._directory(
                f"{mount.kind}-{one.pod.manifest['metadata']['name']}", mount.name
            )
        if mount.kind in ("config", "secret"):
            files = self._data.get((mount.kind, mount.name), {})
            inside = SafeDirectory(place)
            for key, path in mount.items or [(key, key) for key in files]:
                if key in files:
                    inside.make_directory(os.path.dirname(os.fsencode(path)))
                    Path(os.fsdecode(inside.join(os.fsencode(path)))).write_bytes(files[key])
        if mount.sub_path:
            parts = volume_files_main.split_path(b64encode(os.fsencode(mount.sub_path)).decode())
            with suppress(OSError), volume_files_main.open_directory(str(place), parts, make=True):
                place = place.joinpath(*map(os.fsdecode, parts))
        return str(place), mount.path, not mount.read_only

    def _directory(self, kind: str, name: str) -> Path:
        found = self.root / kind / name
        found.mkdir(parents=True, exist_ok=True)
        found.chmod(0o777)  # as a fresh volume: programs of any user write there
        return found


def _run(words: Sequence[str], seconds: int) -> tuple[int, bytes]:
    """The exit status, and the end of what was printed: a program may print without end. Raises
    TimeoutExpired."""
    tail = b""
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    ) as process:
        assert process.stdout is not None
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        try:
            while piece := process.stdout.read(_PIECE):
                tail = (tail + piece)[-_TAIL:]
        finally:
            in_time = timer.is_alive()
            timer.cancel()
    if not in_time:
        raise subprocess.TimeoutExpired(words, seconds)
    return process.returncode, tail


def _options(plan: ContainerPlan) -> list[str]:
    words = ["--security-opt", "no-new-privileges"]
    for option, value in (
        ("--workdir", plan.directory), ("--user", plan.user), ("--hostname", plan.host)
    ):  # fmt: skip
        words += [option, value] if value else []
    return words


def _kind_of(made: Mapping[str, Any]) -> tuple[str, str]:
    return ("secret" if made["kind"] == "Secret" else "config", made["metadata"]["name"])


def _data_of(made: Mapping[str, Any]) -> dict[str, bytes]:
    if made["kind"] == "Secret":
        return {key: b64decode(value) for key, value in made["data"].items()}
    return {
        **{key: value.encode(errors="surrogateescape") for key, value in made["data"].items()},
        **{key: b64decode(value) for key, value in made["binaryData"].items()},
    }


def _encode(container: str, path: bytes) -> str:
    return b64encode(container.encode() + b"/" + path).decode()
