"""Package URLs: one line that names a package of any manager.

`pkg:deb/debian/libc6@2.36-9+deb12u14?arch=amd64`, `pkg:pypi/numpy@1.26.4`. Only what would be
read as structure is percent-encoded, so that versions stay readable.
"""

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

_PLAIN = {
    "name": re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+~-]*"),
    "version": re.compile(r"(?:[A-Za-z0-9_.+~^!:][A-Za-z0-9_.+~^!:-]*)?"),
    "arch": re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_-]*)?"),
    "url": re.compile(r"(?:[A-Za-z][!-~]*)?"),
}
"""The characters of names and versions, for every package manager."""


class Purl(NamedTuple):
    """A package URL taken apart."""

    manager: str
    namespace: str
    name: str
    version: str
    qualifiers: dict[str, str]


def build_purl(
    manager: str, name: str, version: str, *, namespace: str = "", **qualifiers: str
) -> str:
    """Put a package URL together; empty qualifiers are left out."""
    words = ["pkg:" + manager, *([quote(namespace, safe="")] if namespace else [])]
    words.append(quote(name, safe="+~"))
    text = "/".join(words) + (f"@{quote(version, safe='+~:')}" if version else "")
    given = {n: quote(v, safe="+~:/@") for n, v in sorted(qualifiers.items()) if v}
    return text + ("?" + "&".join(f"{n}={v}" for n, v in given.items()) if given else "")


def parse_purl(text: str) -> Purl:
    """Take apart what `purl` put together; a ValueError for anything else."""
    where, _, rest = text.partition("?")
    found = re.fullmatch(r"pkg:([a-z]+)/(?:(.+)/)?([^/@]+)(?:@([^/]*))?", where)
    if found is None:
        raise ValueError(f"no package URL: {text[:100]}")
    manager, namespace, name, version = (part or "" for part in found.groups())
    pairs = (pair.partition("=") for pair in rest.split("&") if pair)
    qualifiers = {n: unquote(v) for n, _, v in pairs}
    return Purl(manager, unquote(namespace), unquote(name), unquote(version), qualifiers)


def describe_package(text: str, requested: bool | None) -> dict[str, str | bool | None] | None:
    """The `package` field of a file in documents; None if it belongs to no package manager.

    Beyond the contract: `url`, where it came from when not from an index, and `arch`. A ValueError
    for what no package manager has: these words end up in Dockerfiles, requirement files and
    commands, where a line break or a leading dash would be an instruction.
    """
    found = parse_purl(text)
    if found.manager == "generic":
        return None
    epoch = found.qualifiers.get("epoch")
    document: dict[str, str | bool | None] = {
        "manager": found.manager,
        "name": found.name,
        "version": f"{epoch}:{found.version}" if epoch else found.version,
        "requested": requested,
    }
    url = found.qualifiers.get("vcs_url") or found.qualifiers.get("download_url")
    more = {"arch": found.qualifiers.get("arch"), "url": url}
    document |= {name: value for name, value in more.items() if value}
    for word, plain in _PLAIN.items():
        if not plain.fullmatch(str(document.get(word) or "")):
            raise ValueError(f"no package URL: its {word} is {str(document[word])[:100]!r}")
    return document


def normalize_pypi_name(name: str) -> str:
    """A distribution's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
