"""Resources and events as JSON files, one per resource, with versions as Kubernetes gives them.

All resources are in memory, too; a file is written before the memory is changed. A resource is
never changed in place, so readers need no copy. A file that cannot be read is left alone and
logged: it must not keep the other notebooks from starting.
"""

import json
import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clew.atomic_file import write_atomically
from clew.disk_reserve import NO_ROOM
from clew.errors import Conflict, Exists, Full, NotFound
from clew.kube.objects import (
    Json,
    Key,
    Object,
    annotations_of,
    dig,
    format_time,
    labels_of,
    name_of,
)

_LOG = logging.getLogger("clew.workloads")
NAMESPACE = "local"
STORED_KINDS = ("Notebook", "Tensorboard", "PVCViewer", "PersistentVolumeClaim")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EVENTS_PER_RESOURCE = 50
_NOUNS = {
    "Notebook": "notebook",
    "Tensorboard": "TensorBoard",
    "PVCViewer": "viewer",
    "PersistentVolumeClaim": "volume",
}


class ResourceFiles:
    """The resources of one project. Thread-safe."""

    def __init__(self, directory: Path, *, check: Callable[[Object], None] | None = None) -> None:
        """`check` raises an error for a resource that is not valid: its file is ignored, too."""
        self._directory = directory
        self._check = check
        self._lock = threading.RLock()
        self._resources: dict[Key, Json] = {}
        self._events: dict[Key, list[Json]] = {}
        self._version = 0
        self.changed = threading.Event()
        """Set at every change that is not a status."""
        self._load()

    @property
    def version(self) -> int:
        return self._version

    def list(self, kind: str, labels: Mapping[str, str] | None = None) -> Sequence[Json]:
        with self._lock:
            if kind == "Event":
                found = [event for events in self._events.values() for event in events]
            else:
                found = [one for key, one in self._resources.items() if key.kind == kind]
        wanted = (labels or {}).items()
        return [one for one in found if all(labels_of(one).get(n) == v for n, v in wanted)]

    def get(self, key: Key) -> Json:
        found = self._resources.get(key)
        if found is None:
            noun = _NOUNS.get(key.kind, key.kind)
            raise NotFound(f"there is no {noun} {key.name[:100]}", hint="it may have been deleted")
        return found

    def create(self, resource: Object) -> Json:
        key = Key(str(resource["kind"]), NAMESPACE, name_of(resource))
        with self._lock:
            if key in self._resources:
                noun = _NOUNS.get(key.kind, key.kind)
                raise Exists(f"there is already a {noun} {key.name}", hint="choose another name")
            metadata = {
                **resource["metadata"],
                "namespace": NAMESPACE,
                "uid": str(uuid.uuid4()),
                "creationTimestamp": _now(),
                "generation": 1,
            }
            return self._put(key, {**resource, "metadata": metadata, "status": {}})

    def merge_patch(
        self, key: Key, patch: Object, *, check: Callable[[Object], None] | None = None
    ) -> Json:
        """Change labels, annotations and spec. `check` raises an error if the result is not
        valid."""
        with self._lock:
            current = self.get(key)
            edited = merge(current, patch)
            if check is not None:
                check(edited)
            return self._put(key, _with_identity(current, edited))

    def replace(self, key: Key, resource: Object) -> Json:
        """Replace labels, annotations and spec."""
        with self._lock:
            current = self.get(key)
            version = dig(resource, "metadata", "resourceVersion")
            if version is not None and version != current["metadata"]["resourceVersion"]:
                raise Conflict(
                    f"{key.name} was changed meanwhile", hint="load it again and repeat the change"
                )
            return self._put(key, _with_identity(current, resource))

    def write_status(self, key: Key, uid: str, status: Json) -> None:
        """Write the status of a resource that still exists; nothing if it stays the same."""
        with self._lock:
            current = self._resources.get(key)
            if current is None or current["metadata"]["uid"] != uid:
                return
            if current.get("status") != status:
                self._put(key, {**current, "status": status}, notify=False)

    def mark_deleted(self, key: Key) -> None:
        """Begin the deletion; `remove` ends it."""
        with self._lock:
            current = self.get(key)
            if not dig(current, "metadata", "deletionTimestamp"):
                metadata = {**current["metadata"], "deletionTimestamp": _now()}
                self._put(key, {**current, "metadata": metadata})

    def remove(self, key: Key) -> None:
        with self._lock:
            self._path(key).unlink(missing_ok=True)
            self._events_path(key).unlink(missing_ok=True)
            self._resources.pop(key, None)
            self._events.pop(key, None)
            self._next_version()
        self.changed.set()

    def add_event(self, key: Key, *, warning: bool, reason: str, message: str) -> None:
        """Add an event; the same one again is counted."""
        with self._lock:
            resource = self._resources.get(key)
            if resource is None:
                return
            events = self._events.get(key, [])
            last = events[-1] if events else {}
            if (last.get("reason"), last.get("message")) == (reason, message):
                count = int(last["count"]) + 1
                events = [*events[:-1], {**last, "count": count, "lastTimestamp": _now()}]
            else:
                made = _make_event(resource, warning=warning, reason=reason, message=message)
                events = [*events, made][-_EVENTS_PER_RESOURCE:]
            self._events[key] = events
            self._next_version()
            with suppress(OSError):
                _write(self._events_path(key), events)

    def touch(self) -> None:
        """Something changed that is not in the files."""
        with self._lock:
            self._next_version()

    def events(self, key: Key) -> Sequence[Json]:
        return self._events.get(key, [])

    def _put(self, key: Key, resource: Json, *, notify: bool = True) -> Json:
        version = str(self._next_version())
        metadata = {**resource["metadata"], "resourceVersion": version}
        made = {**resource, "metadata": metadata}
        try:
            _write(self._path(key), made)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise Full("the disk is full: nothing was changed") from error
            raise
        self._resources[key] = made
        if notify:
            self.changed.set()
        return made

    def _next_version(self) -> int:
        """Increases across restarts, too, without being stored: it is about the time in
        microseconds, and a change takes longer."""
        self._version = max(self._version + 1, time.time_ns() // 1000)
        return self._version

    def _path(self, key: Key) -> Path:
        return self._directory / key.kind.lower() / f"{key.name}.json"

    def _events_path(self, key: Key) -> Path:
        return self._directory / "events" / f"{key.kind.lower()}.{key.name}.json"

    def _load(self) -> None:
        for kind in STORED_KINDS:
            for path in sorted((self._directory / kind.lower()).glob("*.json")):
                key = Key(kind, NAMESPACE, path.stem)
                try:
                    found = _check(json.loads(path.read_bytes()), key)
                    if self._check is not None:
                        self._check(found)
                    self._resources[key] = found
                    with suppress(FileNotFoundError):
                        events = json.loads(self._events_path(key).read_bytes())
                        self._events[key] = [event for event in events if isinstance(event, dict)]
                except Exception as error:  # whatever is in it, the others must be read
                    _LOG.error("%s is ignored: %s", path, error)
        versions = (dig(one, "metadata", "resourceVersion") for one in self._resources.values())
        self._version = max((int(str(version)) for version in versions), default=0)
        self._next_version()


def _with_identity(current: Object, edited: Object) -> Json:
    """The current resource with the labels, annotations and spec of another: names, ids, times and
    status are not for its users to change."""
    metadata = {
        **current["metadata"],
        "labels": dict(labels_of(edited)),
        "annotations": dict(annotations_of(edited)),
    }
    if edited["spec"] != current["spec"]:
        metadata["generation"] = int(metadata.get("generation") or 0) + 1
    return {**current, "metadata": metadata, "spec": edited["spec"]}


def merge(current: Any, patch: Any) -> Any:
    """Apply a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    base = dict(current) if isinstance(current, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            base.pop(name, None)
        else:
            base[name] = merge(base.get(name), value)
    return base


def _check(found: Any, key: Key) -> Json:
    if not isinstance(found, dict) or not _NAME.fullmatch(key.name):
        raise ValueError("it is no resource")
    metadata = found.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(found.get("spec"), dict):
        raise ValueError("metadata or spec is missing")
    if (found.get("kind"), metadata.get("name")) != (key.kind, key.name):
        raise ValueError("kind or name is not that of the file")
    if not str(metadata.get("resourceVersion", "")).isdecimal():
        raise ValueError("its version is missing")
    if not _UID.fullmatch(str(metadata.get("uid"))):  # it becomes a part of paths
        raise ValueError("its uid is missing or malformed")
    return found


def _make_event(resource: Object, *, warning: bool, reason: str, message: str) -> Json:
    now = _now()
    metadata = resource["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{metadata['name']}.{time.time_ns():x}",
            "namespace": NAMESPACE,
            "uid": str(uuid.uuid4()),
            "creationTimestamp": now,
        },
        "involvedObject": {
            "apiVersion": resource.get("apiVersion"),
            "kind": resource["kind"],
            "name": metadata["name"],
            "namespace": NAMESPACE,
            "uid": metadata["uid"],
        },
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": "clew"},
    }


def _write(path: Path, document: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomically(path, json.dumps(document, indent=1).encode(), sync=True)


def _now() -> str:
    return format_time(datetime.now(UTC))
