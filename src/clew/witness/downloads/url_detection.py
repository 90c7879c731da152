"""Where a downloaded file came from, told by the command that fetched it or the place it lies.

Pure functions over what was witnessed: a process's words and the files it wrote. A pair is
given only where the words leave no doubt; anything else is left for `clew source` to say.
URLs come as they were typed: mask them before they are recorded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from clew.witness.downloads.command_lines import Fetch, curl, wget

HUB = "https://huggingface.co"
_HUB = re.compile(
    rb"(?s)(?P<repository>.*/(?P<kind>models|datasets|spaces)--(?P<name>[^/]+))"
    rb"/(?:snapshots/(?P<commit>[0-9a-f]{40})/(?P<file>.+)|blobs/[^/]+)"
)


def downloads(
    argv: Sequence[str], generated: Iterable[bytes], *, cwd: bytes
) -> list[tuple[bytes, str]]:
    """(path, URL) of each file that this command fetched, among those it wrote.

    `generated` are absolute paths, those written through an inherited descriptor included
    (`curl URL > file`).
    """
    program = os.path.basename(argv[0]) if argv else ""
    reader = {"curl": curl, "wget": wget}.get(program)
    if reader is None:
        return []
    fetch = reader(list(argv[1:]))
    written = {path: None for path in generated if not _command_urls(path, fetch, cwd)}
    found: list[tuple[bytes, str]] = []
    unnamed: list[str] = []
    for url, name in fetch.targets:
        path = _absolute(cwd, name) if name is not None else None
        match = _match(path, written) if path is not None else None
        if match is None:
            unnamed.append(url)
        else:
            found.append((match, url))
            del written[match]
    if fetch.complete and len(unnamed) == 1 == len(
        written
    ):  # one file, one address: they belong together
        found.append((next(iter(written)), unnamed[0]))
    return found


def hugging_face(
    path: bytes, links: Mapping[bytes, bytes] | None = None, *, hub: str = HUB
) -> str | None:
    """The URL of a file in Hugging Face's cache, with the commit it was taken from.

    Content lies in `blobs/`, and `snapshots/` holds links to it: for a blob, `links` (link →
    target, as witnessed) tells which file it is. `hub`: the server, where it is another one.
    """
    found = _HUB.fullmatch(path)
    if found is None:
        return None
    if found["commit"] is None:
        inside = found["repository"] + b"/snapshots/"
        for link, target in (links or {}).items():
            whole = os.path.normpath(os.path.join(os.path.dirname(link), target))
            if link.startswith(inside) and whole == os.path.normpath(path):
                return hugging_face(link, hub=hub)
        return None
    kind = {b"models": "", b"datasets": "datasets/", b"spaces": "spaces/"}[found["kind"]]
    name = "/".join(quote(part) for part in found["name"].split(b"--"))
    return (
        f"{hub.rstrip('/')}/{kind}{name}/resolve/{found['commit'].decode()}/{quote(found['file'])}"
    )


def _absolute(cwd: bytes, name: str) -> bytes:
    return os.path.normpath(os.path.join(cwd, os.fsencode(name)))


def _match(path: bytes, written: Mapping[bytes, None]) -> bytes | None:
    """The written file a name stands for: itself, or with the number wget adds to a taken name."""
    if path in written:
        return path
    numbered = [w for w in written if re.fullmatch(re.escape(path) + rb"\.\d+", w)]
    return numbered[0] if len(numbered) == 1 else None


def _command_urls(path: bytes, fetch: Fetch, cwd: bytes) -> bool:
    """Files a tool writes for itself: its log, its cookies, what it remembers of hosts."""
    own = {_absolute(cwd, name) for name in fetch.own_files}
    return path in own or path.startswith(b"/dev/") or path.endswith(b"/.wget-hsts")
