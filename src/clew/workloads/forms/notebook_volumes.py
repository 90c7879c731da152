"""The volumes of a notebook form: new ones to create, and existing ones to mount.

A volume that is chosen twice is mounted twice, but is one volume of the notebook. `{notebook-name}`
in names and paths is replaced here, so that it works in read-only fields as well.
"""

import copy
import hashlib
import posixpath
import re
import secrets
from collections.abc import Mapping
from typing import Any

from clew.errors import UsageError
from clew.kube.objects import Json
from clew.workloads import annotations
from clew.workloads.forms.quantities import parse_positive

PLACEHOLDER = "{notebook-name}"
_CLAIM = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9][-a-z0-9.]{0,246}")
_PATH = re.compile(r"/[^\0:]{0,1022}")
SHARED_MEMORY = "dshm"
ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


class Volumes:
    """Collects the claims, volumes and mounts of one notebook."""

    def __init__(self, notebook: str, request: str | None) -> None:
        self._notebook = notebook
        self._request = request
        self.claims: list[Json] = []
        self.volumes: list[Json] = []
        self.mounts: list[Json] = []

    def add(self, given: Any) -> None:
        if not isinstance(given, Mapping):
            raise UsageError("a volume must have the keys mount, and newPvc or existingSource")
        found = _substitute(dict(given), self._notebook)
        new, existing = found.get("newPvc"), found.get("existingSource")
        if bool(new) == bool(existing):
            raise UsageError("a volume must have either newPvc or existingSource")
        if new:
            claim = self._make_claim(new)
            self.claims.append(claim)
            source: Json = {"persistentVolumeClaim": {"claimName": claim["metadata"]["name"]}}
        else:
            source = _check_source(existing)
        self._mount(source, found.get("mount"), read_only=found.get("readOnly") is True)

    def add_shared_memory(self) -> None:
        self.volumes.append({"name": SHARED_MEMORY, "emptyDir": {"medium": "Memory"}})
        self.mounts.append({"name": SHARED_MEMORY, "mountPath": "/dev/shm"})  # noqa: S108

    def _mount(self, source: Json, path: Any, *, read_only: bool) -> None:
        name = next(
            (one["name"] for one in self.volumes if one == {**source, "name": one["name"]}), None
        )
        if name is None:
            name = _volume_name(source, {one["name"] for one in self.volumes})
            self.volumes.append({"name": name, **source})
        path = check_mount_path(path)
        if any(mount["mountPath"] == path for mount in self.mounts):
            raise UsageError(f"two volumes are mounted at {path}", hint="choose another path")
        more = {"readOnly": True} if read_only else {}
        self.mounts.append({"name": name, "mountPath": path, **more})

    def _make_claim(self, new: Any) -> Json:
        metadata = new.get("metadata") if isinstance(new, Mapping) else None
        spec = new.get("spec") if isinstance(new, Mapping) else None
        if not isinstance(metadata, Mapping) or not isinstance(spec, Mapping):
            raise UsageError("newPvc must have the keys metadata and spec")
        if metadata.get("namespace"):
            raise UsageError("newPvc must not name a namespace")
        notes = {**_texts(metadata, "annotations")}
        if self._request:
            notes[annotations.REQUEST] = self._request
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": self._claim_name(metadata),
                "labels": _texts(metadata, "labels"),
                "annotations": notes,
            },
            "spec": check_claim_spec(dict(spec)),
        }

    def _claim_name(self, metadata: Mapping[str, Any]) -> str:
        name, prefix = metadata.get("name"), metadata.get("generateName")
        if not name and isinstance(prefix, str) and _PREFIX.fullmatch(prefix):
            if self._request is None:
                return prefix + secrets.token_hex(3)
            # The same request must find the volume that it made before.
            key = f"{self._request} {self._notebook} {len(self.claims)}"
            return prefix + hashlib.sha256(key.encode()).hexdigest()[:6]
        return check_claim_name(name)


def check_claim_name(name: Any) -> str:
    if not isinstance(name, str) or not _CLAIM.fullmatch(name):
        raise UsageError("the volume's name must be small letters, digits and dashes")
    return name


def check_claim_spec(spec: Json) -> Json:
    """Check the parts of a claim that a user chooses. Kubeflow's `{none}` is no storage class, its
    `{empty}` the default one."""
    modes = spec.get("accessModes")
    if not isinstance(modes, list) or not modes or not set(map(str, modes)) <= set(ACCESS_MODES):
        raise UsageError(f"accessModes must be of {', '.join(ACCESS_MODES)}")
    resources = spec.get("resources")
    requests = resources.get("requests") if isinstance(resources, Mapping) else None
    size = requests.get("storage") if isinstance(requests, Mapping) else None
    parse_positive(size, "the size of the volume")
    found = copy.deepcopy(spec)
    chosen = found.get("storageClassName")
    if chosen in ("{empty}", None):
        found.pop("storageClassName", None)
    elif chosen == "{none}":
        found["storageClassName"] = ""
    elif not isinstance(chosen, str):
        raise UsageError("storageClassName must be a text")
    return found


def check_mount_path(path: Any) -> str:
    if (
        not isinstance(path, str)
        or not _PATH.fullmatch(path)
        or ".." in path.split("/")
        or posixpath.normpath(path) == "/"
    ):
        raise UsageError(
            f"a volume cannot be mounted at {str(path)[:80]!r}",
            hint="choose an absolute path, such as /home/jovyan/data",
        )
    return posixpath.normpath(path)


def _check_source(existing: Any) -> Json:
    if not isinstance(existing, Mapping) or len(existing) != 1:
        raise UsageError("existingSource must name one source")
    kind, value = next(iter(existing.items()))
    if not isinstance(value, Mapping):
        raise UsageError(f"existingSource.{str(kind)[:80]} must be a mapping")
    if kind == "persistentVolumeClaim":
        claim = value.get("claimName")
        if not isinstance(claim, str) or not _CLAIM.fullmatch(claim):
            raise UsageError("the name of the existing volume is missing or not valid")
    return {str(kind): copy.deepcopy(dict(value))}


def _volume_name(source: Json, taken: set[str]) -> str:
    claim = source.get("persistentVolumeClaim", {}).get("claimName", "")
    name = claim.replace(".", "-")[:63].strip("-")
    if name and name not in taken:
        return str(name)
    digest = hashlib.sha256(repr(sorted(source.items())).encode()).hexdigest()
    return f"existing-source-volume-{digest[:8]}"


def _texts(metadata: Mapping[str, Any], field: str) -> dict[str, str]:
    found = metadata.get(field) or {}
    if not isinstance(found, Mapping) or not all(isinstance(v, str) for v in found.values()):
        raise UsageError(f"{field} must be names and texts")
    return {str(name): value for name, value in found.items()}


def _substitute(found: Any, notebook: str) -> Any:
    if isinstance(found, str):
        return found.replace(PLACEHOLDER, notebook)
    if isinstance(found, Mapping):
        return {name: _substitute(value, notebook) for name, value in found.items()}
    if isinstance(found, list):
        return [_substitute(value, notebook) for value in found]
    return found
