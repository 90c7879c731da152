"""`pipeline-platform.toml`: maps Secrets, ConfigMaps and volumes of a cluster to this machine.

The file names where a secret is, and never contains one. Everything that a pipeline names is looked
up when the pipeline is loaded; what is missing is refused with the lines to add.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from clew.errors import NotFound, UsageError
from clew.pipelines.spec.document_part import InvalidPipeline
from clew.pipelines.spec.ir import Component, EnvVar, Mount, VolumeClaim
from clew.pipelines.spec.kubernetes_platform import LOCAL_FIELDS
from clew.redaction import SHORTEST

FILE_NAME = "pipeline-platform.toml"
_TABLES = ("secrets", "configmaps", "pvcs")


class PlatformMapping(Struct, frozen=True):
    """The content of the file. A secret is read when it is needed."""

    file: Path
    secrets: Mapping[str, Mapping[str, Callable[[], bytes]]] = field(default_factory=dict)
    configmaps: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    claims: Mapping[str, Path] = field(default_factory=dict)

    def keys(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """The content of a Secret or ConfigMap; None if the file has none of this name."""
        if kind != "secret":
            return self.configmaps.get(name)
        found = self.secrets.get(name)
        return None if found is None else {key: read() for key, read in found.items()}


def load_mapping(pipeline: Path, named: Path | None, environ: Mapping[str, str]) -> PlatformMapping:
    """Load the file `named`, or the one beside the pipeline, if there is one."""
    file = named or pipeline.with_name(FILE_NAME)
    try:
        document = tomllib.loads(file.read_text())
    except FileNotFoundError as error:
        if named is None:
            return PlatformMapping(file)
        raise NotFound(f"no file {file}", hint="--platform FILE") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint=f"cat {file}") from error
    for table in document:
        if table not in _TABLES:
            raise _error(file, table, f"unknown table; known are {', '.join(_TABLES)}")
    tables = {table: _check_table(file, table, document.get(table, {})) for table in _TABLES}
    return PlatformMapping(
        file,
        secrets={
            name: {
                key: partial(_read_secret, file, f"secrets.{name}.{key}", value, environ)
                for key, value in _check_table(file, f"secrets.{name}", keys).items()
            }
            for name, keys in tables["secrets"].items()
        },
        configmaps={
            name: {
                key: _check_text(file, f"configmaps.{name}.{key}", value).encode()
                for key, value in _check_table(file, f"configmaps.{name}", keys).items()
            }
            for name, keys in tables["configmaps"].items()
        },
        claims={
            name: _directory(file, f"pvcs.{name}", value) for name, value in tables["pvcs"].items()
        },
    )


def find_missing(mapped: PlatformMapping, one: EnvVar | Mount, name: str) -> str | None:
    """Say what a task names and the file lacks; None if nothing is missing."""
    keys = mapped.keys(one.kind, name)
    if keys is None:
        return None if one.optional else f"there is no {_KIND_NAMES[one.kind]} {name} here"
    if isinstance(one, EnvVar) and one.key not in keys and not one.optional:
        return f"the {_KIND_NAMES[one.kind]} {name} has no key {one.key} here"
    return None


def check_mapping(mapped: PlatformMapping, components: Iterable[Component], volumes: Path) -> None:
    """Refuse names that are missing here; names with placeholders are checked later."""
    components = list(components)
    makes = any(isinstance(one.body, VolumeClaim) and not one.body.delete for one in components)
    for component in components:
        platform = component.platform
        for path in platform.fields.values():
            if path not in LOCAL_FIELDS and not path.startswith("="):
                known = ", ".join(LOCAL_FIELDS)
                raise InvalidPipeline(
                    f"{platform.location}.fieldPathAsEnv: {path} is not available on this machine,"
                    f" only labels and {known}",
                    hint="clew pipeline run --on kubernetes",
                )
        named: list[EnvVar | Mount] = [*platform.env_vars, *platform.mounts]
        for one in named:
            if one.kind not in _KIND_NAMES or "{{$" in one.name:
                continue
            if one.kind == "pvc":
                there = makes or one.name in mapped.claims or (volumes / one.name).is_dir()
                why = None if there else f"there is no volume {one.name} here"
            else:
                why = find_missing(mapped, one, one.name)
            if why is not None:
                raise InvalidPipeline(f"{one.location}: {why}", hint=_build_hint(mapped, one))


_KIND_NAMES = {"secret": "secret", "configmap": "ConfigMap", "pvc": "volume"}


def _build_hint(mapped: PlatformMapping, one: EnvVar | Mount) -> str:
    """The lines to add to the file."""
    key = one.key if isinstance(one, EnvVar) else "KEY"
    lines = {
        "secret": f'[secrets.{one.name}]\n{key} = {{ env = "VARIABLE" }}  # or {{ file = "PATH" }}',
        "configmap": f'[configmaps.{one.name}]\n{key} = "VALUE"',
        "pvc": f'[pvcs]\n{one.name} = "FOLDER"',
    }
    return f"write in {mapped.file}:\n{lines[one.kind]}"


def _read_secret(file: Path, place: str, value: Any, environ: Mapping[str, str]) -> bytes:
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in ("env", "file"):
        raise _error(file, place, 'must be { env = "VARIABLE" } or { file = "PATH" }')
    (source, where), *_ = value.items()
    if source == "env":
        found = environ.get(_check_text(file, place, where), "").encode(errors="surrogateescape")
        if not found:
            raise _error(file, place, f"the variable {where} is not set")
    else:
        try:
            found = (file.parent / Path(_check_text(file, place, where)).expanduser()).read_bytes()
        except OSError as error:
            raise _error(file, place, f"{where} cannot be read: {error.strerror}") from error
    if len(found.strip()) < SHORTEST:
        why = f"is shorter than {SHORTEST} characters, and could not be masked in the output"
        raise _error(file, place, why)
    return found


def _directory(file: Path, place: str, value: Any) -> Path:
    found = (file.parent / Path(_check_text(file, place, value)).expanduser()).resolve()
    if not found.is_dir():
        raise _error(file, place, f"there is no directory {found}")
    return found


def _check_table(file: Path, place: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _error(file, place, "is not a table")
    return value


def _check_text(file: Path, place: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _error(file, place, "is not a string")
    return value


def _error(file: Path, place: str, why: str) -> UsageError:
    return UsageError(f"{file}: {place}: {why}", hint="see docs/how-to/run-a-pipeline.md")
