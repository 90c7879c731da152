"""Volumes and variables of a run's tasks, as the pipeline names them and as they are here.

A process of this machine has no mounts of its own, so a volume is a link at its path, made when a
task begins and taken away when the last that needs it has ended. It is made only where nothing
is, and only where the user may make it. Two tasks that want different volumes at one path run
one after the other (`Need.places`).

Secrets lie in memory, in a directory whose content no execution stores, and go with the run.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import Struct, field

from clew.errors import UsageError
from clew.pipelines.engine.input_resolution import BadInput, fill_placeholders
from clew.pipelines.engine.scopes import Node
from clew.pipelines.spec.document_part import InvalidPipeline
from clew.pipelines.spec.ir import Command, Component, EnvVar, Mount
from clew.pipelines.tasks import platform_file
from clew.pipelines.tasks.platform_file import PlatformMapping
from clew.project_directory import ProjectDirectory
from clew.run import execution_locks
from clew.settings import Settings

VOLUMES_DIRECTORY = "pipeline-volumes"
"""Beside `.clew/`: what pipelines made as claims, until one deletes it."""
_SHM = Path("/dev/shm")  # noqa: S108 -- the directory in it is its owner's alone
_SECRETS_PREFIX = "clew-secrets-"
MASK_PREFIX = "CLEW_SECRET_"
"""Begins variables that only serve to mask, in what a task prints, the secrets it has as files."""

MountPoints = frozenset[tuple[str, str]]


class VolumeError(Exception):
    """A volume cannot be had at its path."""


class TaskEnvironment(Struct, frozen=True):
    """What one task finds, beside what every task does."""

    variables: Mapping[str, str] = field(default_factory=dict)
    places: MountPoints = frozenset()
    """Paths, and the directories that they are to lead to."""
    shared: bool = False
    """It is given what others change: what it leaves there is missing where it is reused."""


def hide_secrets(
    directory: ProjectDirectory, settings: Settings, components: Iterable[Component]
) -> tuple[ProjectDirectory, Settings]:
    """The same, with what keeps secrets out of the record: names to mask, files not to store."""
    names = {
        one.variable
        for component in components
        for one in component.platform.settings
        if one.kind == "secret"
    }
    hidden = f"{_secrets_root()}/{_SECRETS_PREFIX}*"
    return (
        replace(directory, exclude=(*directory.exclude, hidden)),
        replace(settings, redact=(*settings.redact, *sorted(names), f"{MASK_PREFIX}*")),
    )


def check_volumes(
    mapped: PlatformMapping, components: Iterable[Component], root: Path, *, on_host: bool = False
) -> None:
    """Refuse, before anything runs, what is not here and paths that cannot be made. `on_host`: no
    task runs in an image, where any path can be mounted."""
    components = list(components)
    platform_file.check_mapping(mapped, components, root / VOLUMES_DIRECTORY)
    for component in components:
        if isinstance(component.body, Command) and not on_host:
            continue
        for one in component.platform.mounts:
            if one.optional and mapped.keys(one.kind, one.name) is None:
                continue  # perhaps nothing is there to be mounted
            claim = mapped.claims.get(one.name) if one.kind == "pvc" else None
            target = claim / one.below if claim else None
            if (why := _find_obstacle(Path(one.path), target)) is not None:
                hint = f"let it lead to the volume: ln -s {target or 'DIR'} {one.path}"
                if target is None:
                    hint = "mount it at a path that you may make, as /tmp/NAME"
                raise InvalidPipeline(f"{one.place}.mountPath: {why}", hint=hint)


class Volumes:
    """Those of one run."""

    def __init__(
        self, mapped: PlatformMapping, directory: ProjectDirectory, place: Path, uid: str
    ) -> None:
        self._mapped = mapped
        self._claims = directory.root / VOLUMES_DIRECTORY
        self._place = place / "volumes"
        own = f"{_SECRETS_PREFIX}{directory.uid}-"
        self._secrets = _secrets_root() / f"{own}{uid}"
        for left in _secrets_root().glob(f"{own}*"):  # by a run that was killed
            if not execution_locks.is_alive(directory, left.name.removeprefix(own)):
                shutil.rmtree(left, ignore_errors=True)
        self._open: Counter[tuple[str, str]] = Counter()
        self._made: dict[str, list[Path]] = {}

    def given(self, node: Node, attempt: int, facts: Mapping[str, str]) -> TaskEnvironment:
        """What this task finds; nothing is made for it yet."""
        try:
            return self._given(node, attempt, facts)
        except UsageError as error:  # a secret that is not where it is said to be
            raise BadInput(error.message) from error

    def _given(self, node: Node, attempt: int, facts: Mapping[str, str]) -> TaskEnvironment:
        variables, places = {}, set()
        for variable, path in node.component.platform.fields.items():
            variables[variable] = _pod_field(path, node, facts)
        for setting in node.component.platform.settings:
            name = _resolve_name(setting, node, facts)
            if name is None:
                continue
            if (why := platform_file.find_missing(self._mapped, setting, name)) is not None:
                raise BadInput(why)
            value = (self._mapped.keys(setting.kind, name) or {}).get(setting.key)
            if value is not None:
                variables[setting.variable] = _decode_value(value)
        for mount in node.component.platform.mounts:
            name = _resolve_name(mount, node, facts)
            target = self._target(mount, name, f"{node.path}@{attempt}") if name else None
            if name is None or target is None:
                continue
            places.add((mount.path, os.fspath(target)))
            if mount.kind == "secret":
                for key, value in (self._mapped.keys("secret", name) or {}).items():
                    if b"\0" not in value:
                        variables[f"{MASK_PREFIX}{name}_{key}"] = _decode_value(value)
        shared = any(mount.kind == "pvc" for mount in node.component.platform.mounts)
        for found in node.inputs.artifacts.values():
            shared |= any(str(one["uri"]).startswith(facts["workspace_path"]) for one in found)
        return TaskEnvironment(variables, frozenset(places), shared)

    def _target(self, mount: Mount, name: str, task: str) -> Path | None:
        """Where the volume is; None: it is optional, and is not."""
        if mount.kind == "empty":
            return self._place / task / name
        if mount.kind == "pvc":
            claim = self._mapped.claims.get(name) or self._claims / name
            if "/" in name or not claim.is_dir():
                raise BadInput(f"there is no volume {name} here")
            return claim / mount.below
        if (why := platform_file.find_missing(self._mapped, mount, name)) is not None:
            raise BadInput(why)
        if self._mapped.keys(mount.kind, name) is None:
            return None
        return (self._secrets if mount.kind == "secret" else self._place / "configmaps") / name

    # -- links

    def open(self, places: MountPoints, *, mounted: bool = False) -> MountPoints:
        """Let each path lead to its volume; all of them, or none. The answer is what to close.
        `mounted`: in the image that the task runs in, so that no links are needed."""
        opened: set[tuple[str, str]] = set()
        for path, target in sorted(places):
            try:
                if not self._open[path, target]:
                    self._fill(Path(target))
                if not self._open[path, target] and not mounted:
                    self._made[path] = _link(Path(path), Path(target))
            except OSError as error:
                self.close(frozenset(opened))
                raise VolumeError(f"{path}: {error.strerror}") from error
            if not mounted:
                self._open[path, target] += 1
                opened.add((path, target))
        return frozenset(opened)

    def close(self, places: MountPoints) -> None:
        """The task that asked for them has ended."""
        for path, target in sorted(places, reverse=True):
            self._open[path, target] -= 1
            if self._open[path, target] == 0:
                for made in self._made.pop(path, ()):
                    _remove(made)

    def end(self) -> None:
        """The run has ended: so have its secrets, and all its links."""
        for path in sorted(self._made, reverse=True):
            for made in self._made[path]:
                _remove(made)
        self._made.clear()
        shutil.rmtree(self._secrets, ignore_errors=True)

    def _fill(self, target: Path) -> None:
        """The directory, with the keys of a secret or a configuration map as its files."""
        kind = {self._secrets: "secret", self._place / "configmaps": "configmap"}.get(target.parent)
        if kind == "secret":
            self._secrets.mkdir(mode=0o700, exist_ok=True)
        if target.is_dir():
            return
        target.mkdir(parents=True)
        keys = self._mapped.keys(kind, target.name) if kind else None
        for key, value in (keys or {}).items():
            (target / key).write_bytes(value)

    # -- claims

    def create(self, name: str) -> None:
        """Make a volume, which stays when the run has ended."""
        if name in self._mapped.claims:
            raise VolumeError(f"there is a volume {name} already: {self._mapped.claims[name]}")
        try:
            (self._claims / _check_name(name)).mkdir(parents=True)
        except FileExistsError:
            raise VolumeError(f"there is a volume {name} already: {self._claims / name}") from None

    def delete(self, name: str) -> None:
        """Delete one that a pipeline made; a directory of the user's own stays."""
        if name in self._mapped.claims:
            raise VolumeError(f"the volume {name} is your own directory, and is not deleted")
        try:
            shutil.rmtree(self._claims / _check_name(name))
        except FileNotFoundError:
            raise VolumeError(f"there is no volume {name} here") from None


def _secrets_root() -> Path:
    return _SHM if os.access(_SHM, os.W_OK) else Path(tempfile.gettempdir())


def _resolve_name(one: EnvVar | Mount, node: Node, facts: Mapping[str, str]) -> str | None:
    """What a task names; None: something optional, by an input that has no value."""
    try:
        return str(fill_placeholders(one.name, node.named_inputs, node, facts))
    except BadInput:
        if one.optional:
            return None
        raise


def _decode_value(value: bytes) -> str:
    """A value as a variable: without the newline that ends the file it comes from."""
    return os.fsdecode(value.removesuffix(b"\n"))


def _check_name(name: str) -> str:
    if not name or "/" in name or name.startswith("."):
        raise VolumeError(f"{name!r} is no name of a volume")
    return name


def _pod_field(field: str, node: Node, facts: Mapping[str, str]) -> str:
    if field.startswith("="):
        return field[1:]
    return {
        "metadata.name": f"{facts['pipeline_job_name']}-{node.path.replace('/', '-')}",
        "metadata.uid": f"{facts['pipeline_job_uuid']}/{node.path}",
        "metadata.namespace": "local",
        "spec.nodeName": socket.gethostname(),
    }[field]


def _find_obstacle(path: Path, target: Path | None) -> str | None:
    """Why a path cannot lead to a volume; None: it can."""
    if os.path.lexists(path):
        if target is not None and path.is_dir() and path.samefile(target):
            return None
        return f"{path} is there already, and is not this volume"
    above = next(directory for directory in path.parents if os.path.lexists(directory))
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        return f"{path} cannot be made here: {above} is not yours to write"
    return None


def _link(path: Path, target: Path) -> list[Path]:
    """Let `path` lead to `target`; the answer is what was made for that, the link first."""
    if path.is_dir() and path.samefile(target):
        return []
    made = []
    for directory in reversed([one for one in path.parents if not os.path.lexists(one)]):
        directory.mkdir()
        made.append(directory)
    path.symlink_to(target)
    return [path, *reversed(made)]


def _remove(made: Path) -> None:
    """A link, or a directory that was made for one: another run may still have its own in it."""
    try:
        if made.is_symlink():
            made.unlink()
        else:
            made.rmdir()
    except OSError:
        pass
