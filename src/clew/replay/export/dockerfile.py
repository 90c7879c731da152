# Paths are bytes here, which pathlib does not take:
# ruff: noqa: PTH101, PTH211
"""Write a Dockerfile that rebuilds an execution's environment, and the files that it copies.

The result is approximate: it installs packages by name and version, and package archives keep few
versions. The Dockerfile says where it may differ. `oci_image` writes an exact image instead.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from blake3 import blake3

from clew.documents.ids import Digest
from clew.prov.queries.formats import format_time
from clew.replay.export import install_commands
from clew.replay.export.file_sources import FileSources, find_sources
from clew.replay.export.portability import PortableExecution
from clew.replay.sandbox.initial_files import Entry
from clew.safe_path import SafeDirectory

FILES = "files"
"""The directory in the build context that holds the copied files."""

_BASES = {
    "debian": "debian",
    "ubuntu": "ubuntu",
    "fedora": "fedora",
    "rocky": "rockylinux",
    "almalinux": "almalinux",
    "amzn": "amazonlinux",
}
_RELEASES = {"11": "bullseye", "12": "bookworm", "13": "trixie"}
_SHARED = frozenset(
    b"/ /etc /home /media /mnt /opt /root /run /srv /tmp /usr /usr/local /usr/local/bin"
    b" /usr/local/lib /var /var/lib /var/tmp".split()
)
"""Directories that a base image has, with owners and modes that must stay."""
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_UNSAFE = re.compile(rb"[^A-Za-z0-9 ._/+=@,-]")
_CONTINUATION = " \\\n    "


def format_dockerfile(execution: PortableExecution, sources: FileSources) -> str:
    """The text of the Dockerfile."""
    base, same = _base_image(execution, sources)
    sections: list[Iterable[str]] = [
        _header(execution, sources, same),
        [f"ARG BASE=docker.io/library/{base}", "FROM ${BASE}"],
        install_commands.install_system_packages(sources),
        install_commands.link_programs(sources),
        install_commands.install_python(sources, there=base.startswith("python:")),
        install_commands.install_python_packages(sources),
        _copies(execution, sources),
        _variables(execution),
        [f"WORKDIR {_escape(_one_line(execution.plan.cwd))}", "USER {}:{}".format(*execution.user)],
        [f"CMD {json.dumps(execution.plan.command, ensure_ascii=False)}"],
    ]
    texts = ("\n".join(lines) for lines in sections)
    return "\n\n".join(filter(None, texts)) + "\n"


def _base_image(execution: PortableExecution, sources: FileSources) -> tuple[str, bool]:
    """The base image, and whether it is of the recorded system."""
    system = execution.plan.facets.get("os", {})
    name, version = str(system.get("id", "")), str(system.get("version_id", ""))
    if sources.python and name == "debian" and version in _RELEASES:
        return f"python:{sources.python.version}-{_RELEASES[version]}", True
    if name in _BASES and _TAG.fullmatch(version):
        return f"{_BASES[name]}:{version}", True
    return "debian:stable", False


def _header(execution: PortableExecution, sources: FileSources, same: bool) -> Iterator[str]:
    yield f"# {execution.id} ({execution.uid}), recorded until {format_time(execution.ended)}."
    yield "# Built from packages: versions may differ. An exact image: clew export --format oci."
    for warning in execution.warnings:
        yield f"# Note: {_one_line(warning)}."
    comment = _one_line(
        str(execution.plan.facets.get("os", {}).get("pretty_name") or "an unnamed system")
    )
    other = "" if same else ". No image is known for that: this one has other versions"
    yield f"# It ran on {comment}{other}."
    if sources.python and same:
        yield f"# Its Python {sources.python.version} was built or downloaded, not packaged."
    if sources.left:
        yield f"# {sources.left} system files that belong to no package come from the base image."


def _copies(execution: PortableExecution, sources: FileSources) -> Iterator[str]:
    if sources.conda:
        names = ", ".join(f"{p['name']}={p['version']}" for p in sources.conda)
        yield f"# Used files, copied because only conda installs their packages: {_one_line(names)}"
    for path in sorted({_copied_root(path) for path in sources.copied}):
        entry = sources.copied.get(path)
        shown = path.decode(errors="replace")
        if path in _SHARED:
            continue
        if entry is not None and entry.kind == "link":
            target = entry.target.decode(errors="replace")
            yield f"RUN {json.dumps(['ln', '-sfn', '--', target, shown], ensure_ascii=False)}"
            continue
        slash = "/" if entry is None or entry.kind == "directory" else ""
        owner = "--chown={}:{} ".format(*execution.user) if execution.is_user_file(path) else ""
        words = [os.fsdecode(context_path(path)) + slash, _escape(shown + slash)]
        yield f"COPY {owner}{json.dumps(words, ensure_ascii=False)}"


def context_path(path: bytes) -> bytes:
    """The path of a file in the build context. Characters that builders could take for patterns or
    variables are replaced, because builders differ in how they escape them."""
    top = _copied_root(path)
    plain = _UNSAFE.sub(b"_", top)
    if plain != top:
        plain += b"-" + blake3(top).hexdigest(length=4).encode()
    return FILES.encode() + plain + path[len(top) :]


def _copied_root(path: bytes) -> bytes:
    """The highest directory above a path that is not a shared one, or the path itself."""
    top = path
    while os.path.dirname(top) not in _SHARED:
        top = os.path.dirname(top)
    return top


def _variables(execution: PortableExecution) -> Iterator[str]:
    if execution.redacted:
        names = " ".join(f"-e {_one_line(name)}" for name in execution.redacted)
        yield f"# Not recorded because they are secret; set them to run it: {names}"
    lines = []
    for name, value in sorted(execution.plan.environ.items()):
        if _NAME.fullmatch(name) and value.isprintable():
            quoted = _escape(value).replace('"', '\\"')
            lines.append(f'{name}="{quoted}"')
        else:
            yield f"# A Dockerfile cannot contain the variable {_one_line(name)}."
    if lines:
        yield "ENV " + _CONTINUATION.join(lines)


def _escape(word: str) -> str:
    """Builders expand `$` and treat a backslash as a line continuation."""
    return word.replace("\\", "\\\\").replace("$", "\\$")


def _one_line(words: str) -> str:
    """Keep untrusted text on its line."""
    return "".join(c if c.isprintable() else " " for c in words)


class Restore(Protocol):
    """Writes a content to a new file."""

    def __call__(
        self, digest: Digest, to: bytes, /, *, mode: int | None, mtime: int | None, sync: bool
    ) -> None: ...


def write_context(execution: PortableExecution, directory: Path, *, restore: Restore) -> None:
    """Fill a new directory."""
    sources = find_sources(execution)
    (directory / FILES).mkdir(parents=True)
    (directory / "Dockerfile").write_text(format_dockerfile(execution, sources), encoding="utf-8")
    places = SafeDirectory(directory)
    filled: list[tuple[bytes, Entry, int]] = []
    for path, entry in sorted(sources.copied.items()):
        mode = execution.ownership(path, entry)[2]
        if entry.kind == "directory":
            filled.append((places.make_directory(context_path(path)), entry, mode))
        else:
            _write_entry(places.join(context_path(path)), entry, mode, restore)
    for target, entry, mode in reversed(filled):
        # last, from the innermost: filling a directory changes its time
        os.utime(target, ns=(entry.mtime, entry.mtime))
        os.chmod(target, (mode & 0o1777) | 0o700)


def _write_entry(target: bytes, entry: Entry, mode: int, restore: Restore) -> None:
    if entry.kind == "link":
        os.symlink(entry.target, target)
    elif entry.kind == "stub":
        with open(target, "xb") as file:
            file.truncate(entry.size)
            os.fchmod(file.fileno(), mode)
            os.utime(file.fileno(), ns=(entry.mtime, entry.mtime))
    else:
        restore(entry.digest, target, mode=mode, mtime=entry.mtime, sync=False)
