"""Plan a repeat from the record, before anything starts.

A plan holds the command, its variables, working directory and files. What makes a repeat impossible
is an error; what makes it less faithful is a warning. Pure except for the listings and secrets it
is given.
"""

from __future__ import annotations

import os
import posixpath
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clew.documents.ids import Digest, Locator
from clew.errors import ClewError, NoContent, UsageError
from clew.prov.locators import file_locator, is_gpu_device, path_of, stream_locator
from clew.prov.queries.execution_record import ExecutionRecord
from clew.redaction import MASK
from clew.replay.repeat.credential_files import (
    CredentialFile,
    describe_credential_files,
    find_credential_files,
    keep_placeable,
    make_credential_files,
    make_placeholders,
)
from clew.replay.repeat.secret_values import SecretValues
from clew.replay.sandbox.initial_files import Entry, InitialFiles, ReadListing, find_initial_files

_STANDARD_DEVICES = tuple(
    f"/dev/{name}/"
    for name in (
        *("null", "zero", "full", "tty", "random", "urandom", "stdin", "stdout", "stderr"),
        *("fd", "pts", "ptmx", "shm"),
    )
)
"""Devices that every sandbox has."""
_ALLOWED_SYS = ("/sys/devices/system", "/sys/fs/cgroup", "/sys/kernel/mm")
"""Parts of /sys about processors and memory, read-only, if the execution used them. With a GPU the
sandbox gets all of /sys, read-only: libraries look for the GPU there."""
_WIRES = ("tcp://", "udp://", "http://", "https://", "ftp://")
_LOOPBACK = ("tcp://127.", "tcp://[::1]", "udp://127.", "udp://[::1]")
_GAP_WARNINGS = {
    "32-bit": "a 32-bit program, which was not started because it cannot be recorded",
    "set-uid": "a set-uid program, which ran without its privilege and will again",
    "ptrace": "a program that tried to trace another",
    "shared-memory": "data in shared memory, which is not recorded",
    "mount": "a file system that was mounted during the run",
    "root": "a process that changed its root directory",
}


@dataclass(frozen=True)
class RepeatPlan:
    """A command and everything it will find."""

    command: tuple[str, ...]
    environ: Mapping[str, str]
    secrets: Mapping[str, str]
    """Variables that the caller gave; they are masked in output and records."""
    cwd: str
    machine: str
    initial_files: InitialFiles
    facets: Mapping[str, Any]
    packages: Mapping[bytes, str]
    stdin: Digest | None
    """The digest of the standard input, if it was stored."""
    appended: Mapping[bytes, tuple[Digest, int]]
    """Files that its output was appended to: the final content, and the size before."""
    devices: tuple[str, ...]
    warnings: tuple[str, ...]
    credentials: Mapping[bytes, CredentialFile] = field(default_factory=dict)
    """Files that the caller gave; stubs take their place in `initial_files`."""

    def with_files(self, entries: Mapping[bytes, Entry | None]) -> RepeatPlan:
        """Return a copy with some files added, replaced, or removed (None)."""
        after = self.initial_files.with_changes(dict(entries))
        left = {path: file for path, file in self.credentials.items() if path not in entries}
        return replace(self, initial_files=after, credentials=keep_placeable(left, after))


def make_plan(
    record: ExecutionRecord,
    *,
    read_listing: ReadListing,
    values: SecretValues,
    network: bool | None,
    gpu: bool = False,
) -> RepeatPlan:
    """Plan how to repeat `record`. `values`: the caller's values for secrets that are not recorded;
    `network`: it gets the network, or None if it will run elsewhere; `gpu`: it may use the GPUs
    that it used."""
    itself = record.itself
    if itself.ended is None:
        raise ClewError(
            f"the record of {record.execution.id} is incomplete: it cannot be repeated",
            hint="repeat one that is done: clew list",
        )
    if "task_pod" in record.facets:
        raise ClewError(
            f"{record.execution.id} ran as a Pod: it cannot be repeated here, because the files of"
            " its image are not recorded",
            hint="clew pipeline run … --on kubernetes --no-cache runs the pipeline again",
        )
    first = find_initial_files(record, read_listing)
    credentials = find_credential_files(record, first, values)
    missing = [path for path in first.missing if path not in credentials]
    if missing:
        some = ", ".join(os.fsdecode(path) for path in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise NoContent(
            f"the content of {some}{more} is not stored: {record.execution.id} cannot be repeated",
            hint="ask its author for a record with these files"
            if record.execution.made_elsewhere
            else "record.exclude in .clew/config.toml says what is not kept: "
            "change that, and record the command again",
        )
    wanted = list_secrets(record)
    offered = values.select(record.execution, wanted, map(os.fsdecode, credentials))
    given = {name: offered[name] for name in wanted}
    files = make_credential_files(record, credentials, offered, values)
    if files:
        first = first.with_changes(make_placeholders(files))
    locators = {record.versions[edge.version].locator for edge in record.used}
    devices, refused = _select_devices(locators, gpu=gpu)
    return RepeatPlan(
        command=_command(record, given),
        environ=_variables(record, given),
        secrets=given,
        cwd=itself.cwd or "/",
        machine=str(record.facets.get("machine", "")),
        initial_files=first,
        facets=record.facets,
        packages=_package_owners(record),
        stdin=_find_stdin(record),
        appended=_appended_files(record),
        devices=devices,
        warnings=(
            *(() if network is None else _untrusted_warnings(record, offered, network)),
            *(f"the record does not need the secret {n}" for n in values.given if n not in offered),
            *describe_credential_files(files),
            *_warnings(record, locators, devices, refused, network is not False),
        ),
        credentials=keep_placeable(files, first),
    )


def replace_words(command: Iterable[str], changes: Mapping[int, str]) -> tuple[str, ...]:
    """Replace some words of the command; word 0 is the program."""
    words = list(command)
    for number, value in changes.items():
        if not 0 <= number < len(words):
            raise UsageError(
                f"there is no word {number}: the command has {len(words)}, counted from 0",
                hint="clew show prints the command",
            )
        words[number] = value
    return tuple(words)


def resolve_word(word: str, cwd: str) -> bytes:
    """The path of the file that a word names for a command started in `cwd`."""
    return os.fsencode(posixpath.normpath(posixpath.join(cwd, word)))


def list_secrets(record: ExecutionRecord) -> list[str]:
    """The names of the secrets that a repeat needs: in variables, and in the command."""
    variables = [n for n in record.facets.get("redacted", ()) if n in record.itself.environment]
    masks = record.facets.get("argument_secrets", {}).values()
    return sorted({*variables, *(name for names in masks for name in names if name)})


def drop_word_secrets(record: ExecutionRecord, words: Iterable[int]) -> ExecutionRecord:
    """Drop the secrets of words that the repeat replaces."""
    masked = record.facets.get("argument_secrets", {})
    replaced = {str(number) for number in words}
    kept = {number: names for number, names in masked.items() if number not in replaced}
    return replace(record, facets={**record.facets, "argument_secrets": kept})


def _variables(record: ExecutionRecord, given: Mapping[str, str]) -> dict[str, str]:
    variables = {n: v for n, v in record.itself.environment.items() if v is not None}
    for name, raw in record.facets.get("variables_b64", {}).items():
        if name in variables:
            variables[name] = os.fsdecode(b64decode(raw))
    hidden = [name for name in record.facets.get("redacted", ()) if name in variables]
    return variables | {name: given[name] for name in hidden}


def _command(record: ExecutionRecord, given: Mapping[str, str]) -> tuple[str, ...]:
    """The command, with its secrets filled in."""
    masked = record.facets.get("argument_secrets", {})
    words = []
    for number, word in enumerate(record.itself.command):
        names = masked.get(str(number), ())
        first, *rest = word.split(MASK)
        if names and len(rest) != len(names):  # it had asterisks of its own beside the secret
            raise UsageError(
                f"word {number} of the command held a secret that is not recorded",
                hint=f"give it again: clew repeat {record.execution.id} --set {number}=…",
            )
        values = [MASK if name is None else given[name] for name in names or [None] * len(rest)]
        words.append(first + "".join(map("".join, zip(values, rest, strict=True))))
    return tuple(words)


def _package_owners(record: ExecutionRecord) -> dict[bytes, str]:
    owned = ((path_of(v.locator), v.package) for v in record.versions.values())
    return {path: package for path, package in owned if path is not None and package is not None}


def _find_stdin(record: ExecutionRecord) -> Digest | None:
    line = record.lines.get(stream_locator(record.execution.uid, "stdin"), ())
    if any(version.digest and not version.stored for version in line):
        raise NoContent(
            f"the standard input of {record.execution.id} is not stored: it cannot be repeated",
            hint="let it read a file, and record it again; see stream_limit in the settings",
        )
    return next((version.digest for version in line if version.digest), None)


def _appended_files(record: ExecutionRecord) -> dict[bytes, tuple[Digest, int]]:
    inputs: dict[bytes, tuple[Digest, int]] = {}
    machine = str(record.facets.get("machine", ""))
    for word in record.facets.get("streams", {}).values():
        if word.get("kind") == "file" and word.get("begin"):
            path = os.fsencode(word["path"])
            left = record.left.get(file_locator(machine, path))
            if left is not None and left.digest is not None and left.stored:
                inputs[path] = left.digest, word["begin"]
    return inputs


def _select_devices(
    locators: Iterable[Locator], *, gpu: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the devices that the execution used into those the sandbox gets and the others."""
    given: set[str] = set()
    refused: set[str] = set()
    for locator in locators:
        path = posixpath.normpath(os.fsdecode(path_of(locator) or b"/"))
        if path.startswith("/sys/"):
            part = next(
                (prefix for prefix in _ALLOWED_SYS if f"{path}/".startswith(f"{prefix}/")), None
            )
            (refused if part is None else given).add(part or path)
        elif path.startswith("/dev/") and not f"{path}/".startswith(_STANDARD_DEVICES):
            (given if gpu and is_gpu_device(path) else refused).add(path)
    if any(is_gpu_device(path) for path in given):
        given = {path for path in given if not path.startswith("/sys/")} | {"/sys"}
        refused = {path for path in refused if not path.startswith("/sys/")}
    return tuple(sorted(given)), tuple(sorted(refused))


def _untrusted_warnings(
    record: ExecutionRecord, given: Mapping[str, str], network: bool
) -> Iterable[str]:
    """Warnings about what a record made elsewhere gets of this machine."""
    if record.execution.made_elsewhere:
        reach = "the network" if network else "no network"
        names = f"these secrets: {', '.join(given)}" if given else "none of your secrets"
        yield f"this record was made elsewhere: it gets {reach} and {names}"


def _first(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{values[0]} and {len(values) - 1} more"


def _warnings(
    record: ExecutionRecord,
    locators: Iterable[Locator],
    devices: Iterable[str],
    refused: Iterable[str],
    network: bool,
) -> Iterable[str]:
    peers = sorted(at for at in locators if at.startswith(_WIRES) and not at.startswith(_LOOPBACK))
    if peers and not network:
        yield f"it used the network ({_first(peers)}), and now has none: --network allows it"
    elif peers:
        yield f"it uses the network ({peers[0]}): the answers may have changed"
    given = [path for path in devices if is_gpu_device(path)]
    if given:
        yield f"it uses the GPU of this machine ({_first(given)}), not that of the record"
    gpus = [path for path in refused if is_gpu_device(path)]
    if gpus:
        yield f"it used a GPU ({gpus[0]}), and now has none: --gpu allows it"
    others = [path for path in refused if path not in gpus]
    if others:
        yield f"it used {_first(others)}, which a sandbox does not have"
    if record.facets.get("typed"):
        yield "it read what was typed at a terminal, which is not recorded: its input is empty now"
    for what in sorted({gap.what for gap in record.gaps}):
        if what in _GAP_WARNINGS:
            yield f"there was {_GAP_WARNINGS[what]}"
