"""A Dockerfile that makes an execution's surroundings again, from packages.

Approximately: packages are asked for by name and version, and their archives keep few versions;
it says so where it does. `images` makes the exact thing. Pure text from what the execution needs.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator

from blake3 import blake3

from clew.prov.queries.formats import moment
from clew.replay.export import install_commands
from clew.replay.export.file_sources import Ingredients
from clew.replay.export.portable_execution import Portable

FILES = "files"
"""The folder beside the Dockerfile that holds what is copied."""

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
"""Folders that a base image has, with owners and modes that must stay."""
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_UNPLAIN = re.compile(rb"[^A-Za-z0-9 ._/+=@,-]")
_NEXT = " \\\n    "


def dockerfile(what: Portable, needs: Ingredients) -> str:
    """The text of the Dockerfile."""
    base, same = _base(what, needs)
    sections: list[Iterable[str]] = [
        _begin(what, needs, same),
        [f"ARG BASE=docker.io/library/{base}", "FROM ${BASE}"],
        install_commands.system(needs),
        install_commands.links(needs),
        install_commands.python(needs, there=base.startswith("python:")),
        install_commands.sites(needs),
        _copies(what, needs),
        _variables(what),
        [f"WORKDIR {_plain(what.plan.cwd)}", "USER {}:{}".format(*what.user)],
        [f"CMD {json.dumps(what.plan.command, ensure_ascii=False)}"],
    ]
    texts = ("\n".join(lines) for lines in sections)
    return "\n\n".join(filter(None, texts)) + "\n"


def _base(what: Portable, needs: Ingredients) -> tuple[str, bool]:
    """The image to begin with, and whether it is of the system that was recorded."""
    system = what.plan.facets.get("os", {})
    name, version = str(system.get("id", "")), str(system.get("version_id", ""))
    if needs.python and name == "debian" and version in _RELEASES:
        return f"python:{needs.python.version}-{_RELEASES[version]}", True
    if name in _BASES and _TAG.fullmatch(version):
        return f"{_BASES[name]}:{version}", True
    return "debian:stable", False


def _begin(what: Portable, needs: Ingredients, same: bool) -> Iterator[str]:
    yield f"# {what.id} ({what.uid}), recorded until {moment(what.ended)}."
    yield "# Made again from packages: nearly the same. An exact image: clew export --format oci."
    for warning in what.warnings:
        yield f"# Note: {_line(warning)}."
    told = _line(str(what.plan.facets.get("os", {}).get("pretty_name") or "an unnamed system"))
    other = "" if same else ". No image is known for that: this is another, with other versions"
    yield f"# It ran on {told}{other}."
    if needs.python and same:
        yield f"# Its Python {needs.python.version} was of no package, but built or fetched."
    if needs.left:
        yield f"# {needs.left} files of the machine, of no package, are as the base image has them."


def _copies(what: Portable, needs: Ingredients) -> Iterator[str]:
    if needs.conda:
        names = ", ".join(f"{p['name']}={p['version']}" for p in needs.conda)
        yield f"# Copied as far as they were used, for only conda installs them: {_line(names)}"
    for path in sorted({_top(path) for path in needs.copied}):
        entry = needs.copied.get(path)
        shown = path.decode(errors="replace")
        if path in _SHARED:
            continue
        if entry is not None and entry.kind == "link":
            target = entry.target.decode(errors="replace")
            yield f"RUN {json.dumps(['ln', '-sfn', '--', target, shown], ensure_ascii=False)}"
            continue
        slash = "/" if entry is None or entry.kind == "folder" else ""
        owner = "--chown={}:{} ".format(*what.user) if what.own(path) else ""
        words = [os.fsdecode(place(path)) + slash, _escaped(shown + slash)]
        yield f"COPY {owner}{json.dumps(words, ensure_ascii=False)}"


def place(path: bytes) -> bytes:
    """Where in the folder that is built a path lies: names as builders cannot mistake them for
    patterns or variables, of which each has its own idea."""
    top = _top(path)
    plain = _UNPLAIN.sub(b"_", top)
    if plain != top:
        plain += b"-" + blake3(top).hexdigest(length=4).encode()
    return FILES.encode() + plain + path[len(top) :]


def _top(path: bytes) -> bytes:
    """The highest folder above a path that is not everybody's, or the path itself."""
    top = path
    while os.path.dirname(top) not in _SHARED:
        top = os.path.dirname(top)
    return top


def _variables(what: Portable) -> Iterator[str]:
    if what.redacted:
        names = " ".join(f"-e {_line(name)}" for name in what.redacted)
        yield f"# Not recorded, for they were secret; set them to run it: {names}"
    lines = []
    for name, value in sorted(what.plan.environ.items()):
        if _NAME.fullmatch(name) and value.isprintable():
            quoted = _escaped(value).replace('"', '\\"')
            lines.append(f'{name}="{quoted}"')
        else:
            yield f"# A Dockerfile cannot hold the variable {_line(name)}."
    if lines:
        yield "ENV " + _NEXT.join(lines)


def _escaped(word: str) -> str:
    """A builder would put a variable's value where a dollar is, and go on with the next line after
    a backslash."""
    return word.replace("\\", "\\\\").replace("$", "\\$")


def _plain(path: str) -> str:
    return _escaped(_line(path))


def _line(words: str) -> str:
    """Text from outside cannot leave its line."""
    return "".join(c if c.isprintable() else " " for c in words)
