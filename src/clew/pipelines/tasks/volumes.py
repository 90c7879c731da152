"""The volumes of a run, and the variables that tasks get from secrets and Pod fields.

A process of this machine has no mounts of its own, so a volume is a symbolic link at its mount
path. The link is created when a task starts, and removed when the last task that needs it has
ended. It is created only where nothing exists and the user may write. Two tasks that need different
volumes at one path run one after the other (`ResourceRequest.mount_points`).

Secrets are kept in memory (`/dev/shm`), excluded from every record, and removed with the run.
"""

import os
import shutil
import socket
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import Struct, field

from clew.documents.ids import Uid
from clew.pipelines.engine.input_resolution import BadInput, fill_placeholders
from clew.pipelines.engine.run_state import Node
from clew.pipelines.spec.document_part import InvalidPipeline
from clew.pipelines.spec.ir import Command, Component, EnvVar, Mount
from clew.pipelines.tasks import platform_mapping
from clew.pipelines.tasks.platform_mapping import PlatformMapping
from clew.project_directory import ProjectDirectory
from clew.run import spool_directories
from clew.settings import Settings

VOLUMES_DIRECTORY = "pipeline-volumes"
"""Beside `.clew/`: the volumes that pipelines created, until a pipeline deletes them."""
_SHM = Path("/dev/shm")  # noqa: S108 -- the directory in it is its owner's alone
_SECRETS_PREFIX = "clew-secrets-"
MASK_PREFIX = "CLEW_SECRET_"
"""Prefix of variables that hold the content of mounted secrets, only to mask it in the output."""

MountPoints = frozenset[tuple[str, str]]
"""Pairs of a mount path and the directory it leads to."""


class VolumeError(Exception):
    """A volume cannot be created, deleted or mounted."""


class TaskEnvironment(Struct, frozen=True):
    """The variables and volumes that one task gets from its platform settings."""

    variables: Mapping[str, str] = field(default_factory=dict)
    mount_points: MountPoints = frozenset()
    shared: bool = False
    """It uses a directory that other tasks change, so it cannot be reused."""


def hide_secrets(
    directory: ProjectDirectory, settings: Settings, components: Iterable[Component]
) -> tuple[ProjectDirectory, Settings]:
    """The same, with the secrets' variables to mask and their files not to store."""
    platforms = [component.platform for component in components]
    names = {one.variable for p in platforms for one in p.env_vars if one.kind == "secret"}
    if any(mount.kind == "secret" for p in platforms for mount in p.mounts):
        names.add(f"{MASK_PREFIX}*")
    if not names:  # a pattern makes redaction scan every word of every command
        return directory, settings
    hidden = f"{_secrets_root()}/{_SECRETS_PREFIX}*"
    return (
        replace(directory, exclude=(*directory.exclude, hidden)),
        replace(settings, redact=(*settings.redact, *sorted(names))),
    )


def check_volumes(
    mapped: PlatformMapping, components: Iterable[Component], root: Path, *, on_host: bool = False
) -> None:
    """Refuse, before anything runs, what is missing here and mount paths that cannot be created.
    `on_host`: no task runs in an image, where any path can be mounted."""
    components = list(components)
    platform_mapping.check_mapping(mapped, components, root / VOLUMES_DIRECTORY)
    for component in components:
        if isinstance(component.body, Command) and not on_host:
            continue
        for one in component.platform.mounts:
            if one.optional and mapped.keys(one.kind, one.name) is None:
                continue
            claim = mapped.claims.get(one.name) if one.kind == "pvc" else None
            target = claim / one.sub_path if claim else None
            if (why := _find_obstacle(Path(one.path), target)) is not None:
                hint = f"link it to the volume: ln -s {target} {one.path}"
                if target is None:
                    hint = "mount it at a path that you may create, such as /tmp/NAME"
                raise InvalidPipeline(f"{one.location}.mountPath: {why}", hint=hint)


class Volumes:
    """The volumes of one run."""

    def __init__(
        self, mapped: PlatformMapping, directory: ProjectDirectory, place: Path, uid: Uid
    ) -> None:
        self._mapped = mapped
        self._claims = directory.root / VOLUMES_DIRECTORY
        self._place = place / "volumes"
        own = f"{_SECRETS_PREFIX}{directory.uid}-"
        self._secrets = _secrets_root() / f"{own}{uid}"
        for left in _secrets_root().glob(f"{own}*"):  # left by a killed run
            if not spool_directories.is_alive(directory, Uid(left.name.removeprefix(own))):
                shutil.rmtree(left, ignore_errors=True)
        self._open: Counter[tuple[str, str]] = Counter()
        self._made: dict[str, list[Path]] = {}

    def environment_for(
        self, node: Node, attempt: int, facts: Mapping[str, str]
    ) -> TaskEnvironment:
        """Resolve what a task needs, without creating anything."""
        variables, mount_points = {}, set()
        for variable, path in node.component.platform.fields.items():
            variables[variable] = _pod_field(path, node, facts)
        for env_var in node.component.platform.env_vars:
            name = _resolve_name(env_var, node, facts)
            if name is None:
                continue
            if (why := platform_mapping.find_missing(self._mapped, env_var, name)) is not None:
                raise BadInput(why)
            value = (self._mapped.keys(env_var.kind, name) or {}).get(env_var.key)
            if value is not None:
                variables[env_var.variable] = _decode_value(value)
        for mount in node.component.platform.mounts:
            name = _resolve_name(mount, node, facts)
            target = self._target(mount, name, f"{node.path}@{attempt}") if name else None
            if name is None or target is None:
                continue
            mount_points.add((mount.path, os.fspath(target)))
            if mount.kind == "secret":
                for key, value in (self._mapped.keys("secret", name) or {}).items():
                    if b"\0" not in value:
                        variables[f"{MASK_PREFIX}{name}_{key}"] = _decode_value(value)
        shared = any(mount.kind == "pvc" for mount in node.component.platform.mounts)
        workspace = facts["workspace_path"]
        for artifacts in node.inputs.artifacts.values():
            shared |= any(str(one["uri"]).startswith(workspace) for one in artifacts)
        return TaskEnvironment(variables, frozenset(mount_points), shared)

    def _target(self, mount: Mount, name: str, task: str) -> Path | None:
        """The directory of a volume; None if it is optional and missing."""
        if mount.kind == "empty":
            return self._place / task / name
        if mount.kind == "pvc":
            claim = self._mapped.claims.get(name) or self._claims / name
            if "/" in name or not claim.is_dir():
                raise BadInput(f"there is no volume {name} here")
            return claim / mount.sub_path
        if (why := platform_mapping.find_missing(self._mapped, mount, name)) is not None:
            raise BadInput(why)
        if self._mapped.keys(mount.kind, name) is None:
            return None
        return (self._secrets if mount.kind == "secret" else self._place / "configmaps") / name

    # -- links

    def mount(self, mount_points: MountPoints, *, mounted: bool = False) -> MountPoints:
        """Link each path to its volume: all of them, or none. Returns what to unmount.
        `mounted`: the container runtime mounts them, so no links are needed."""
        linked: set[tuple[str, str]] = set()
        for path, target in sorted(mount_points):
            try:
                if not self._open[path, target]:
                    self._fill(Path(target))
                if not self._open[path, target] and not mounted:
                    self._made[path] = _link(Path(path), Path(target))
            except OSError as error:
                self.unmount(frozenset(linked))
                raise VolumeError(f"{path}: {error.strerror}") from error
            if not mounted:
                self._open[path, target] += 1
                linked.add((path, target))
        return frozenset(linked)

    def unmount(self, mount_points: MountPoints) -> None:
        """Remove the links that no other task needs."""
        for path, target in sorted(mount_points, reverse=True):
            self._open[path, target] -= 1
            if self._open[path, target] == 0:
                for made in self._made.pop(path, ()):
                    _remove(made)

    def close(self) -> None:
        """Remove the secrets and all links at the end of the run."""
        for path in sorted(self._made, reverse=True):
            for made in self._made[path]:
                _remove(made)
        self._made.clear()
        shutil.rmtree(self._secrets, ignore_errors=True)

    def _fill(self, target: Path) -> None:
        """Create the directory, with the keys of a secret or ConfigMap as files."""
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
        """Create a volume, which outlives the run."""
        if name in self._mapped.claims:
            raise VolumeError(f"the volume {name} already exists: {self._mapped.claims[name]}")
        try:
            (self._claims / _check_name(name)).mkdir(parents=True)
        except FileExistsError:
            raise VolumeError(f"the volume {name} already exists: {self._claims / name}") from None

    def delete(self, name: str) -> None:
        """Delete a volume that a pipeline created; never a directory of the user."""
        if name in self._mapped.claims:
            raise VolumeError(f"the volume {name} is your own directory, and is not deleted")
        try:
            shutil.rmtree(self._claims / _check_name(name))
        except FileNotFoundError:
            raise VolumeError(f"there is no volume {name} here") from None


def _secrets_root() -> Path:
    return _SHM if os.access(_SHM, os.W_OK) else Path(tempfile.gettempdir())


def _resolve_name(one: EnvVar | Mount, node: Node, facts: Mapping[str, str]) -> str | None:
    """The resolved name; None if it is optional and its input has no value."""
    try:
        return str(fill_placeholders(one.name, node.named_inputs, node, facts))
    except BadInput:
        if one.optional:
            return None
        raise


def _decode_value(value: bytes) -> str:
    """Decode a value for a variable, without the file's final newline."""
    return os.fsdecode(value.removesuffix(b"\n"))


def _check_name(name: str) -> str:
    if not name or "/" in name or name.startswith("."):
        raise VolumeError(f"{name!r} is not a valid name of a volume")
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
    """Why a path cannot be linked to a volume; None if it can."""
    if os.path.lexists(path):
        if target is not None and path.is_dir() and path.samefile(target):
            return None
        return f"{path} already exists, and is not this volume"
    above = next(directory for directory in path.parents if os.path.lexists(directory))
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        return f"{path} cannot be created: you may not write to {above}"
    return None


def _link(path: Path, target: Path) -> list[Path]:
    """Link `path` to `target`; returns what was created, the link first."""
    if path.is_dir() and path.samefile(target):
        return []
    made = []
    for directory in reversed([one for one in path.parents if not os.path.lexists(one)]):
        directory.mkdir()
        made.append(directory)
    path.symlink_to(target)
    return [path, *reversed(made)]


def _remove(made: Path) -> None:
    """Remove a link, or a directory created for one unless another run uses it."""
    try:
        if made.is_symlink():
            made.unlink()
        else:
            made.rmdir()
    except OSError:
        pass
