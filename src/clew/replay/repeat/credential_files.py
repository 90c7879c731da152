"""Give a repeat the credential files that its record does not contain.

A record has only the digests of credential files (`clew.redaction.files`), so a repeat gets their
bytes from its caller (`secret_values`). They are written to the sandbox layer that takes its
changes and is removed with it: never to the store or to the cache of initial files, where a file of
zeros takes their place.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from blake3 import blake3

from clew.prov.locators import path_of
from clew.prov.queries.execution_record import ExecutionRecord, Version
from clew.redaction import find_secret_values, list_credential_globs, make_withheld_matcher
from clew.replay.repeat.secret_values import SecretValues
from clew.replay.sandbox.initial_files import Entry, InitialFiles
from clew.safe_path import SafeDirectory
from clew.store.errors import from_os

_MAX_ALIASES = 100
"""At most this many paths of one file through links: links can form cycles."""


@dataclass(frozen=True)
class CredentialFile:
    """A file that a repeat is given, with the recorded mode and time."""

    data: bytes = field(repr=False)
    mode: int
    mtime: int
    recorded: str | None
    """The recorded digest."""
    from_this_machine: bool
    """Read from this machine, not given by name."""
    secrets: tuple[str, ...] = field(repr=False)
    """The values in it that are masked in output and records."""

    @property
    def digest(self) -> str:
        return f"blake3:{blake3(self.data).hexdigest()}"

    @property
    def matches_record(self) -> bool:
        return self.digest == self.recorded


def find_credential_files(
    record: ExecutionRecord, found: InitialFiles, values: SecretValues
) -> list[bytes]:
    """The files without bytes that are credentials by their path, or by that of a link to them."""
    environ = {name: value for name, value in record.itself.environment.items() if value}
    globs = list_credential_globs(values.credentials, environ, record.itself.cwd or "/")
    is_credential = make_withheld_matcher(globs)
    links = [
        (path, os.path.normpath(os.path.join(os.path.dirname(path), entry.target)))
        for path, entry in found.entries.items()
        if entry.kind == "link"
    ]
    return [
        path
        for path in found.missing
        if any(is_credential(os.fsdecode(name)) for name in _aliases(path, links))
    ]


def _aliases(path: bytes, links: Iterable[tuple[bytes, bytes]]) -> list[bytes]:
    """The path, and the paths that lead to it through `links` (link, target)."""
    names = [path]
    for name in names:
        for link, target in links:
            if name == target or name.startswith(target + b"/"):
                alias = link + name[len(target) :]
                if alias not in names and len(names) < _MAX_ALIASES:
                    names.append(alias)
    return names


def make_credential_files(
    record: ExecutionRecord, paths: Iterable[bytes], given: Mapping[str, str], values: SecretValues
) -> dict[bytes, CredentialFile]:
    """Build the files at these paths from the values in `given`. A value that the record shows in
    its command or variables is not secret, so it is not masked."""
    versions = _first_versions(record)
    itself = record.itself
    shown = "\0".join((*itself.command, *filter(None, itself.environment.values())))
    files: dict[bytes, CredentialFile] = {}
    for path in paths:
        name, version = os.fsdecode(path), versions[path]
        files[path] = CredentialFile(
            data=given[name].encode(errors="surrogateescape"),
            mode=stat.S_IMODE(version.mode or 0o600),
            mtime=version.mtime or 0,
            recorded=version.digest,
            from_this_machine=name not in values.given,
            secrets=tuple(value for value in find_secret_values(given[name]) if value not in shown),
        )
    return files


def _first_versions(record: ExecutionRecord) -> dict[bytes, Version]:
    lines = ((path_of(locator), line[0]) for locator, line in record.lines.items())
    return {path: first for path, first in lines if path is not None}


def make_placeholders(files: Mapping[bytes, CredentialFile]) -> dict[bytes, Entry | None]:
    """Entries that stand for the files where their bytes must not be."""
    return {
        path: Entry("stub", file.mode, file.mtime, len(file.data)) for path, file in files.items()
    }


def keep_placeable(
    files: Mapping[bytes, CredentialFile], found: InitialFiles
) -> dict[bytes, CredentialFile]:
    """Drop files that cannot be written because the record contradicts itself: a link or file above
    one, or something below it."""
    stubs = {path for path, entry in found.entries.items() if entry.kind == "stub"}
    return {path: file for path, file in files.items() if path in stubs}


def describe_credential_files(files: Mapping[bytes, CredentialFile]) -> Iterator[str]:
    """Tell the user which credential files the repeat gets."""
    for path, file in files.items():
        name = os.fsdecode(path)
        changed = "" if file.matches_record else ", which has changed since it was recorded"
        if file.from_this_machine:
            yield f"it gets your own {name}{changed}"
        elif changed:
            yield f"it gets the {name} that you provided, which differs from the recorded one"


def write_credential_files(files: Mapping[bytes, CredentialFile], upper: Path, lower: Path) -> None:
    """Write the files to the upper directory of an overlay; parent directories get the modes and
    times of the lower one."""
    try:
        _write(files, upper, lower)
    except OSError as error:
        raise from_os(error, doing="give the sandbox its credential files") from error


def _write(files: Mapping[bytes, CredentialFile], upper: Path, lower: Path) -> None:
    places = SafeDirectory(upper)
    directories: set[bytes] = set()
    for path, file in files.items():
        target = places.join(path[1:])
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as to:
            to.write(file.data)
            to.flush()
            os.fchmod(descriptor, file.mode)
            os.utime(descriptor, ns=(file.mtime, file.mtime))
        directory = os.path.dirname(path)
        while len(directory) > 1:
            directories.add(directory)
            directory = os.path.dirname(directory)
    for directory in directories:
        status = os.lstat(os.fsencode(lower) + directory)
        target = os.fsencode(upper) + directory
        os.chmod(target, stat.S_IMODE(status.st_mode))  # noqa: PTH101 (bytes)
        os.utime(target, ns=(status.st_mtime_ns, status.st_mtime_ns))
