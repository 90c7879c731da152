"""RO-Crate: an execution as a directory that describes itself (Process Run Crate profile).

The execution is a `CreateAction`, and so is each of its processes that read or wrote a file of
the user's. Its inputs are in `inputs/`, its outputs in `outputs/`, under the paths the
files had; a file whose bytes are not stored is described, but not included. Files of packages
are named by their packages, as requirements of the program. A file that was moved or copied
outside Clew `isBasedOn` the earlier version with the same bytes, which is inferred, not observed.
"""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from clew.documents.ids import Digest, Locator
from clew.errors import NoContent
from clew.prov import package_urls
from clew.prov.graph import Graph
from clew.prov.queries.execution_record import Activity, ExecutionRecord, load_record
from clew.prov.queries.executions import IsRunning
from clew.prov.queries.files import File, FileVersion, list_files
from clew.prov.queries.formats import format_time, path_fields, version_id
from clew.prov.queries.lineage.content_links import find_copied_versions
from clew.prov.queries.show import classify_locator, show_execution
from clew.prov.row_keys import digest_text
from clew.safe_path import SafeDirectory, escape_names

Copy = Callable[[Digest, bytes], None]
"""Writes the bytes of a digest to a new file; NoContent where they are not stored."""

_CONTEXT = [
    "https://w3id.org/ro/crate/1.1/context",
    "https://w3id.org/ro/terms/workflow-run/context",
]
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_STATUS = {"done": "CompletedActionStatus", "running": "ActiveActionStatus"}

Entity = dict[str, Any]


def write_crate(
    graph: Graph, text: str, directory: Path, *, alive: IsRunning, copy: Copy | None = None
) -> None:
    """Write the execution into `directory`; with `copy`, the bytes of its own files as well."""
    directory.mkdir(parents=True, exist_ok=True)
    crate = _Crate(graph, text, directory, alive, copy)
    metadata = {"@context": _CONTEXT, "@graph": crate.entities()}
    (directory / "ro-crate-metadata.json").write_text(
        json.dumps(metadata, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )


class _Crate:
    def __init__(
        self, graph: Graph, text: str, directory: Path, alive: IsRunning, copy: Copy | None
    ) -> None:
        self._record: ExecutionRecord = load_record(graph, text)
        self._shown = show_execution(graph, self._record.execution.id, alive=alive).as_json()
        self._files = list_files(graph, self._record.execution.key)
        found = (version.key for version in self._record.versions.values() if version.found)
        self._copied = find_copied_versions(graph, found)
        self._directory = SafeDirectory(directory)
        self._copy = copy
        self._described: dict[str, Entity] = {}
        self._inside: list[str] = []

    def entities(self) -> list[Entity]:
        inputs, outputs, ids = self._own_files()
        action = self._execution_action(inputs, outputs)
        steps = list(self._process_actions(ids))
        root = {
            "@id": "./",
            "@type": "Dataset",
            "name": self._title(),
            "description": f"A recorded run of: {self._command()}",
            "datePublished": self._shown["ended"] or self._shown["started"],
            "license": "not stated",
            "conformsTo": {"@id": _PROFILE},
            "hasPart": [{"@id": name} for name in self._inside],
            "mentions": [{"@id": entity["@id"]} for entity in (action, *steps)],
        }
        return [
            {
                "@id": "ro-crate-metadata.json",
                "@type": "CreativeWork",
                "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
                "about": {"@id": "./"},
            },
            root,
            {
                "@id": _PROFILE,
                "@type": "CreativeWork",
                "name": "Process Run Crate",
                "version": "0.5",
            },
            action,
            *steps,
            *self._described.values(),
        ]

    def _own_files(self) -> tuple[list[str], list[str], dict[int, str]]:
        """The user's files: the ids of inputs and of outputs, and the ids by version."""
        inputs: list[str] = []
        outputs: list[str] = []
        ids: dict[int, str] = {}
        for file in self._files:
            owner = next((v.package for v in file.versions if v.package is not None), None)
            if classify_locator(file.locator, owner, file.left.mode) in ("package", "system"):
                continue
            found = next((v for v in file.versions if v.found and v.read), None)
            if found is not None:
                ids[found.key] = self._file(file, found, "inputs")
                inputs.append(ids[found.key])
            if file.role == "output":
                ids[file.left.key] = self._file(file, file.left, "outputs")
                outputs.append(ids[file.left.key])
        return inputs, outputs, ids

    def _file(self, file: File, version: FileVersion, part: str) -> str:
        path = os.fsdecode(escape_names(os.fsencode(_within(file.locator))))
        name = f"{part}/{quote(path)}"
        if not self._bring(version, f"{part}/{path}"):
            name = f"#{name}"
        else:
            self._inside.append(name)
        entity: Entity = {"@id": name, "@type": "File", "name": path_fields(file.locator)["path"]}
        if version.size is not None:
            entity["contentSize"] = str(version.size)
        if version.digest is not None:
            entity["identifier"] = version.digest
        if version.key in self._copied:
            entity["isBasedOn"] = {"@id": self._copied_version(version.key)}
        self._described[name] = entity
        return name

    def _copied_version(self, key: int) -> str:
        source, link = self._copied[key]
        version = version_id(source.number, source.locator, source.ordinal)
        name = f"#version-{quote(version)}"
        self._described[name] = {
            "@id": name,
            "@type": "CreativeWork",
            "name": version,
            "identifier": digest_text(source.digest),
            "description": f"Recorded earlier with the same bytes. That the file was copied from "
            f"it is inferred, not observed; the evidence is {link.strength}.",
        }
        return name

    def _bring(self, version: FileVersion, path: str) -> bool:
        if self._copy is None or version.digest is None or not version.stored:
            return False
        try:
            self._copy(version.digest, self._directory.join(os.fsencode(path)))
        except NoContent:
            return False
        return True

    def _execution_action(self, inputs: list[str], outputs: list[str]) -> Entity:
        shown = self._shown
        action: Entity = {
            "@id": f"#{shown['uid']}",
            "@type": "CreateAction",
            "name": self._title(),
            "description": self._command(),
            "instrument": {"@id": self._program("#program", (shown["command"] or ["?"])[0])},
            "object": [{"@id": name} for name in inputs],
            "result": [{"@id": name} for name in outputs],
            "startTime": shown["started"],
            "actionStatus": {
                "@id": "http://schema.org/" + _STATUS.get(shown["state"], "FailedActionStatus")
            },
        }
        if shown["ended"]:
            action["endTime"] = shown["ended"]
        if shown["agent"]:
            action["agent"] = {"@id": self._agent(shown["agent"])}
        if shown["state"] in ("failed", "broken"):
            action["error"] = f"status {shown['status']}, signal {shown['signal']}"
        self._described["#program"]["softwareRequirements"] = list(self._requirements())
        return action

    def _process_actions(self, ids: dict[int, str]) -> Iterable[Entity]:
        """The processes that touched a file of the user's, in the order they began."""
        read = _by_activity(self._record.used, ids)
        written = _by_activity(self._record.generated, ids)
        for activity in self._record.activities.values():
            if activity.key not in read and activity.key not in written:
                continue
            yield self._process_action(activity, read, written)

    def _process_action(
        self, activity: Activity, read: dict[int, list[str]], written: dict[int, list[str]]
    ) -> Entity:
        exe = activity.exe or " ".join(activity.command[:1]) or activity.uid
        action: Entity = {
            "@id": f"#{quote(activity.uid)}",
            "@type": "CreateAction",
            "name": " ".join(activity.command) or exe,
            "instrument": {"@id": self._program(f"#exe-{quote(exe)}", exe)},
            "object": [{"@id": name} for name in read.get(activity.key, [])],
            "result": [{"@id": name} for name in written.get(activity.key, [])],
            "startTime": format_time(activity.started),
        }
        if activity.ended is not None:
            action["endTime"] = format_time(activity.ended)
        return action

    def _requirements(self) -> Iterable[dict[str, str]]:
        owners = {v.package for file in self._files for v in file.versions if v.package}
        for owner in sorted(owners):
            try:
                package = package_urls.parse_purl(owner)
            except ValueError:
                continue
            self._described[owner] = {
                "@id": owner,
                "@type": "SoftwareApplication",
                "name": package.name,
                "softwareVersion": package.version,
            }
            yield {"@id": owner}

    def _program(self, name: str, title: str) -> str:
        entity = {"@id": name, "@type": "SoftwareApplication", "name": title}
        self._described.setdefault(name, entity)
        return name

    def _agent(self, agent: str) -> str:
        name = f"#agent-{quote(agent)}"
        self._described[name] = {"@id": name, "@type": "Person", "name": agent}
        return name

    def _title(self) -> str:
        return self._shown["name"] or f"{self._shown['id']}: {self._command()[:80]}"

    def _command(self) -> str:
        return " ".join(self._shown["command"]) or "a command that was not recorded"


def _within(locator: Locator) -> str:
    """A place inside the crate: the path as the locator writes it, so any path has a plain name."""
    if locator.startswith("file://"):
        return locator[locator.find("/", len("file://")) :].lstrip("/")
    return quote(path_fields(locator)["path"], safe="")


def _by_activity(edges: Iterable[Any], ids: dict[int, str]) -> dict[int, list[str]]:
    grouped: dict[int, dict[str, None]] = {}
    for edge in edges:
        if edge.version in ids:
            grouped.setdefault(edge.activity, {})[ids[edge.version]] = None
    return {activity: list(names) for activity, names in grouped.items()}
