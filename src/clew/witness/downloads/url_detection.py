"""Find the URL of a downloaded file, from the command that fetched it or from its path in a cache.

Pure functions over the command line of a process and the files it wrote. They return a pair only
if the command line is unambiguous; users name other sources with `clew source`. URLs are returned
as they were typed: mask secrets before recording them.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from clew.witness.downloads.command_lines import Fetch, parse_curl, parse_wget

HUB = "https://huggingface.co"
_HUB_PATH = re.compile(
    rb"(?s)(?P<repository>.*/(?P<kind>models|datasets|spaces)--(?P<name>[^/]+))"
    rb"/(?:snapshots/(?P<commit>[0-9a-f]{40})/(?P<file>.+)|blobs/[^/]+)"
)


def pair_downloads(
    argv: Sequence[str], generated: Iterable[bytes], *, cwd: bytes
) -> list[tuple[bytes, str]]:
    """(path, URL) of each downloaded file among the files that this command wrote.

    `generated` are absolute paths, including those written through an inherited descriptor
    (`curl URL > file`).
    """
    program = os.path.basename(argv[0]) if argv else ""
    parse = {"curl": parse_curl, "wget": parse_wget}.get(program)
    if parse is None:
        return []
    fetch = parse(list(argv[1:]))
    written = {path: None for path in generated if not _is_own_file(path, fetch, cwd)}
    pairs: list[tuple[bytes, str]] = []
    unnamed: list[str] = []
    for url, name in fetch.targets:
        path = _absolute(cwd, name) if name is not None else None
        match = _match(path, written) if path is not None else None
        if match is None:
            unnamed.append(url)
        else:
            pairs.append((match, url))
            del written[match]
    # one file and one URL are left: they belong together
    if fetch.complete and len(unnamed) == 1 == len(written):
        pairs.append((next(iter(written)), unnamed[0]))
    return pairs


def hugging_face_url(
    path: bytes, links: Mapping[bytes, bytes] | None = None, *, hub: str = HUB
) -> str | None:
    """The URL of a file in the Hugging Face cache, with its commit; None for other files.

    The content is in `blobs/`, and `snapshots/` has links to it: `links` (link → target, as
    recorded) tells which file a blob is. `hub` is the URL of the server.
    """
    match = _HUB_PATH.fullmatch(path)
    if match is None:
        return None
    if match["commit"] is None:
        snapshots = match["repository"] + b"/snapshots/"
        for link, target in (links or {}).items():
            resolved = os.path.normpath(os.path.join(os.path.dirname(link), target))
            if link.startswith(snapshots) and resolved == os.path.normpath(path):
                return hugging_face_url(link, hub=hub)
        return None
    kind = {b"models": "", b"datasets": "datasets/", b"spaces": "spaces/"}[match["kind"]]
    name = "/".join(quote(part) for part in match["name"].split(b"--"))
    return (
        f"{hub.rstrip('/')}/{kind}{name}/resolve/{match['commit'].decode()}/{quote(match['file'])}"
    )


def _absolute(cwd: bytes, name: str) -> bytes:
    return os.path.normpath(os.path.join(cwd, os.fsencode(name)))


def _match(path: bytes, written: Mapping[bytes, None]) -> bytes | None:
    """The written file with this path, or with the number that wget adds if the path exists."""
    if path in written:
        return path
    numbered = [w for w in written if re.fullmatch(re.escape(path) + rb"\.\d+", w)]
    return numbered[0] if len(numbered) == 1 else None


def _is_own_file(path: bytes, fetch: Fetch, cwd: bytes) -> bool:
    """Whether the tool wrote the file for itself: a log, cookies, or its HSTS database."""
    own_files = {_absolute(cwd, name) for name in fetch.own_files}
    return path in own_files or path.startswith(b"/dev/") or path.endswith(b"/.wget-hsts")
