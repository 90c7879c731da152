"""The defaults of the notebook form, and what users may change: `spawner_ui_config.yaml` in
Kubeflow's format.

The file is read again when it changes. A malformed file changes nothing: the last good one, or the
bundled one, stays in use, and `error` says what is wrong with the file. `FormDefaults` answers the
questions of `notebook_form`, which enforces the administrator's choices.
"""

import logging
import threading
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from clew.bounded_documents import load_documents
from clew.errors import ClewError, UsageError
from clew.kube.objects import Json, Object, dig
from clew.workloads.forms.quantities import parse_quantity

_LOG = logging.getLogger("clew.workloads")
_MAX_BYTES = 1 << 20
IMAGE_FIELDS = {"jupyter": "image", "group-one": "imageGroupOne", "group-two": "imageGroupTwo"}
"""The images of each server type."""
_SWITCHES = ("allowCustomImage", "hideRegistry", "hideTag")
_FIELDS = (
    *IMAGE_FIELDS.values(), "imagePullPolicy", "cpu", "memory", "gpus", "workspaceVolume",
    "dataVolumes", "affinityConfig", "tolerationGroup", "shm", "configurations", "environment",
)  # fmt: skip


class FormDefaults:
    """The `spawnerFormDefaults` of a checked configuration."""

    def __init__(self, fields: Json) -> None:
        self.fields = fields

    @property
    def allows_custom_images(self) -> bool:
        return bool(self.fields.get("allowCustomImage", True))

    def has(self, name: str) -> bool:
        return name in self.fields

    def value(self, name: str) -> Any:
        return dig(self.fields, name, "value")

    def is_read_only(self, name: str) -> bool:
        return bool(dig(self.fields, name, "readOnly"))

    def images(self, server_type: str) -> Sequence[str]:
        field = self.fields.get(IMAGE_FIELDS[server_type]) or {}
        return [*(field.get("options") or ()), *([field["value"]] if field.get("value") else [])]

    def limit_factor(self, name: str) -> Any:
        """How many times the request the limit is; None: no limit."""
        factor = dig(self.fields, name, "limitFactor")
        return None if factor in (None, "", "none") else factor

    def gpu_vendors(self) -> Sequence[str]:
        vendors = dig(self.fields, "gpus", "value", "vendors") or ()
        return [str(vendor["limitsKey"]) for vendor in vendors]

    def vendor_names(self) -> dict[str, str]:
        """The names of the GPU vendors, by their resource names."""
        vendors = dig(self.fields, "gpus", "value", "vendors") or ()
        return {
            str(vendor["limitsKey"]): str(vendor.get("uiName") or vendor["limitsKey"])
            for vendor in vendors
        }

    def option(self, name: str, key_field: str, key: str) -> Object | None:
        """The option of an affinity or toleration group with this key."""
        options = dig(self.fields, name, "options") or ()
        return next((one for one in options if one.get(key_field) == key), None)


class SpawnerConfig:
    """The configuration in a file; thread-safe."""

    def __init__(self, path: Path | None, *, bundled: str) -> None:
        """`path`: the administrator's file, which may not exist (yet); `bundled`: the name of the
        configuration that counts without it, `local` or `cluster`."""
        self._path = path
        self._bundled_text = _read_bundled(bundled)
        self._bundled = parse_config(self._bundled_text)
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] | None = None
        self._current = self._bundled
        self._error: str | None = None

    @property
    def defaults(self) -> FormDefaults:
        self._reload()
        return self._current

    @property
    def error(self) -> str | None:
        """Why the file is not in use."""
        self._reload()
        return self._error

    @property
    def text(self) -> str:
        """The text of the file, valid or not; if there is none, the bundled configuration."""
        try:
            if self._path is not None:
                with self._path.open("rb") as file:
                    return file.read(_MAX_BYTES).decode(errors="replace")
        except OSError:
            pass  # `error` says why it cannot be read
        return self._bundled_text

    def _reload(self) -> None:
        if self._path is None:
            return
        with self._lock:
            try:
                found = self._path.stat()
                seen = (found.st_mtime_ns, found.st_size, found.st_ino)
            except FileNotFoundError:
                self._seen, self._current, self._error = None, self._bundled, None
                return
            except OSError as error:
                self._error = f"{self._path.name} cannot be read: {error.strerror}"
                return
            if seen == self._seen:
                return
            self._seen = seen
            self._error = self._read()

    def _read(self) -> str | None:
        """Read the file; returns what is wrong with it."""
        assert self._path is not None
        try:
            with self._path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
            if len(data) > _MAX_BYTES:
                raise UsageError(f"it is larger than {_MAX_BYTES} bytes")
            self._current = parse_config(data.decode())
        except (OSError, UnicodeError, ClewError) as error:
            text = error.message if isinstance(error, ClewError) else str(error)
            _LOG.error("%s is not used: %s", self._path, text)
            return f"{self._path.name} is not used: {text}"
        return None


def parse_config(text: str) -> FormDefaults:
    """Parse and check a configuration; UsageError says what is wrong with it."""
    documents = load_documents(text)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UsageError("it must be one mapping with the key spawnerFormDefaults")
    fields = documents[0].get("spawnerFormDefaults")
    if not isinstance(fields, dict):
        raise UsageError("the key spawnerFormDefaults is missing or not a mapping")
    for name in _SWITCHES:
        if not isinstance(fields.get(name, False), bool):
            raise UsageError(f"{name} must be true or false")
    for name in _FIELDS:
        if name in fields:
            _check_field(name, fields[name])
    return FormDefaults(fields)


def _check_field(name: str, field: Any) -> None:
    if not isinstance(field, dict):
        raise UsageError(f"{name} must be a mapping with the key value")
    if not isinstance(field.get("readOnly", False), bool):
        raise UsageError(f"{name}.readOnly must be true or false")
    options, value = field.get("options", []), field.get("value")
    if name in IMAGE_FIELDS.values():
        _check_texts(f"{name}.options", options)
    elif name in ("affinityConfig", "tolerationGroup"):
        _check_mappings(f"{name}.options", options)
    elif name in ("cpu", "memory"):
        for key in ("value", "limitFactor"):
            if field.get(key) not in (None, "", "none"):
                parse_quantity(field[key], f"{name}.{key}")
    elif name == "gpus":
        vendors = dig(field, "value", "vendors") or []
        _check_mappings("gpus.value.vendors", vendors)
        _check_texts("gpus.value.vendors", [vendor.get("limitsKey") for vendor in vendors])
    elif name in ("dataVolumes", "workspaceVolume"):
        volumes = value if name == "dataVolumes" else [value]
        volumes = [] if value is None else volumes
        _check_mappings(f"{name}.value", volumes)
    elif name == "configurations":
        _check_texts("configurations.value", [] if value is None else value)


def _check_texts(name: str, values: Any) -> None:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise UsageError(f"{name} must be a list of texts")


def _check_mappings(name: str, values: Any) -> None:
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise UsageError(f"{name} must be a list of mappings")


def _read_bundled(name: str) -> str:
    return (resources.files("clew.workloads.forms") / f"spawner_{name}.yaml").read_text()
