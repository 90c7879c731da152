"""The directories of volumes: where the content of each is, and that it stays there.

A volume is a directory in `.clew/volumes`, or one of the project's own directories that its
annotation names. The volume `project` is the project's directory itself; it cannot be changed or
deleted. No volume, and no path in a volume, leads out of the project: links are resolved, and the
result is checked.
"""

import shutil
import stat
from datetime import UTC, datetime
from pathlib import Path

from clew.errors import NotAllowed, NotFound, UsageError
from clew.kube.objects import Json, Object, annotations_of, dig, format_time, name_of
from clew.workloads.annotations import DIRECTORY
from clew.workloads.local.resource_files import NAMESPACE

PROJECT = "project"
"""The volume that is the project's directory."""
STORAGE_CLASS = "directory"
MODES = ["ReadWriteMany", "ReadWriteOnce"]


class VolumeDirectories:
    def __init__(self, root: Path, own: Path, uid: str, created: str) -> None:
        """`root`: the project's directory; `own`: its `.clew`; `uid`, `created`: of the project."""
        self._root = root.resolve()
        self._own = own.resolve()
        self._uid = uid
        self._created = created

    def project_claim(self) -> Json:
        """The volume that is always there."""
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": PROJECT,
                "namespace": NAMESPACE,
                "uid": self._uid,
                "resourceVersion": "1",
                "creationTimestamp": self._created,
                "labels": {},
                "annotations": {DIRECTORY: "."},
            },
            "spec": {"accessModes": MODES, "storageClassName": STORAGE_CLASS},
            "status": {"phase": "Bound", "accessModes": MODES},
        }

    def check(self, claim: Object) -> None:
        """Refuse a volume whose annotation leads out of the project, or into Clew's own files."""
        named = annotations_of(claim).get(DIRECTORY)
        if named is None:
            return
        if Path(named).is_absolute() or ".." in named.split("/") or "\0" in named or not named:
            raise UsageError(
                f"a volume cannot be the directory {named[:100]!r}",
                hint="name a directory of the project, such as data/raw",
            )
        place = (self._root / named).resolve()
        self._check_inside(place, self._root, named)
        if place == self._own or place.is_relative_to(self._own):
            raise NotAllowed("a volume cannot be in Clew's own directory")

    def path(self, claim: Object) -> Path:
        """The directory of a volume, which is made if it is its own and missing."""
        if name_of(claim) == PROJECT:
            return self._root
        self.check(claim)
        named = annotations_of(claim).get(DIRECTORY)
        if named is not None:
            place = (self._root / named).resolve()
            if not place.is_dir():
                raise NotFound(f"the directory {named} does not exist", hint=f"mkdir {named}")
            return place
        place = self._own / "volumes" / name_of(claim)
        place.mkdir(parents=True, exist_ok=True)
        if not stat.S_ISDIR(place.lstat().st_mode):
            raise NotAllowed(f"{place} is a link or a file", hint="remove it")
        return place

    def path_in(self, claim: Object, inner: str) -> Path:
        """A path in a volume; it need not exist."""
        volume = self.path(claim)
        if {".", ".."} & set(inner.split("/")) or "\0" in inner:
            raise UsageError(f"{inner[:100]!r} is not a path in a volume")
        place = (volume / inner.strip("/")).resolve()
        self._check_inside(place, volume.resolve(), inner)
        return place

    def delete(self, claim: Object) -> None:
        """Delete the content of a volume, unless it is a directory of the user's own."""
        if annotations_of(claim).get(DIRECTORY) is not None or name_of(claim) == PROJECT:
            return
        place = self._own / "volumes" / name_of(claim)
        if place.is_symlink():
            place.unlink()
        elif place.exists():
            shutil.rmtree(place)

    def bound_status(self, claim: Object) -> Json:
        return {
            "phase": "Bound",
            "accessModes": dig(claim, "spec", "accessModes") or MODES,
            "capacity": dict(dig(claim, "spec", "resources", "requests") or {}),
        }

    def _check_inside(self, place: Path, directory: Path, named: str) -> None:
        if place != directory and not place.is_relative_to(directory):
            raise NotAllowed(
                f"{named[:100]} leads out of its directory",
                hint="a link in it leads elsewhere: name the real directory",
            )


def project_created(own: Path) -> str:
    """The time of the project's creation, as far as its directory tells."""
    return format_time(datetime.fromtimestamp((own / "config.toml").stat().st_mtime, UTC))
