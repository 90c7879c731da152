"""Find where files came from that an execution only read: downloads and Git checkouts.

Browsers, `curl --xattr` and `wget --xattr` leave the URL of a download in an extended attribute; in
that of a component's module, Clew itself leaves the file of the pipeline. A file of a Git checkout
is named by its blob and commit, as a SWHID (swhid.org). A file counts only if it is still in the
state in which it was read.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from urllib.parse import quote

from clew.witness.syscalls.trace_format import FileStat
from clew.witness.syscalls.version_tracker import file_stat_of

Files = Mapping[bytes, FileStat]
"""The paths of files, and the state in which each was read."""

ORIGIN_ATTRIBUTE = "user.xdg.origin.url"
_URL = re.compile(r"(?:https?://|ftp://|file:///)[^\s\x00-\x1f\x7f]{1,4000}")
_GIT_SECONDS = 3.0
"""How long to wait for git."""
_REPOSITORIES = 4
_LARGEST, _MOST = 8 << 20, 64 << 20
"""Bytes to hash of one file, and of all."""
_BLOB = re.compile(rb"([0-9a-f]{40}) blob (\d{1,18})")
_COMMIT = re.compile(rb"([0-9a-f]{40}) commit \d+")


def find_download_urls(files: Files) -> dict[bytes, str]:
    """The URL in the extended attribute of each file that has one. It may contain secrets."""
    urls: dict[bytes, str] = {}
    for path, file_stat in files.items():
        with suppress(OSError):
            url = os.getxattr(path, ORIGIN_ATTRIBUTE, follow_symlinks=False).decode(
                errors="replace"
            )
            if _URL.fullmatch(url) and _is_unchanged(path, file_stat):
                urls[path] = url
    return urls


def find_git_blobs(files: Files, environ: Mapping[str, str]) -> dict[bytes, str]:
    """The SWHID of each file that is the same as in the commit that is checked out there."""
    repositories: dict[bytes, list[bytes]] = {}
    find_repository = cache(_find_repository)
    for path, file_stat in files.items():
        top = find_repository(os.path.dirname(path))
        if top is not None and 0 < file_stat.size <= _LARGEST and b"\n" not in path:
            repositories.setdefault(top, []).append(path)
    ids: dict[bytes, str] = {}
    left = _MOST
    for top in sorted(repositories, key=lambda top: -len(repositories[top]))[:_REPOSITORIES]:
        for path, blob, commit in _list_blobs(top, repositories[top], environ):
            left -= files[path].size
            if left < 0:
                return ids
            if _hash_blob(path, files[path]) == blob:
                inside = quote(os.path.relpath(path, top), safe="/")
                ids[path] = f"swh:1:cnt:{blob};anchor=swh:1:rev:{commit};path=/{inside}"
    return ids


def _find_repository(directory: bytes) -> bytes | None:
    while not os.path.lexists(os.path.join(directory, b".git")):
        directory, last = os.path.dirname(directory), directory
        if directory == last:
            return None
    return directory


def _list_blobs(
    top: bytes, paths: list[bytes], environ: Mapping[str, str]
) -> Iterator[tuple[bytes, str, str]]:
    """(path, blob, commit) of the files that the checked-out commit has."""
    import subprocess  # only needed in a repository

    asked = [b"HEAD^{commit}", *(b"HEAD:" + os.path.relpath(path, top) for path in paths)]
    variables = {n: environ[n] for n in ("PATH", "HOME", "XDG_CONFIG_HOME") if n in environ}
    # nothing is fetched: a repository could name a program for that
    variables |= {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "LC_ALL": "C"}
    try:
        completed = subprocess.run(
            ("git", "-C", os.fsdecode(top), "cat-file", "--batch-check"),
            check=False,
            env=variables,
            input=b"\n".join(asked) + b"\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    first, *answers = completed.stdout.split(b"\n")[: len(asked)] or [b""]
    commit = _COMMIT.fullmatch(first)
    if commit is None or len(answers) != len(paths):
        return
    for path, answer in zip(paths, answers, strict=True):
        if blob := _BLOB.fullmatch(answer):
            yield path, blob[1].decode(), commit[1].decode()


def _hash_blob(path: bytes, file_stat: FileStat) -> str | None:
    """The id that Git gives to the content of a file, as it was read."""
    from hashlib import sha1  # loads OpenSSL, and most executions read no file of Git

    with suppress(OSError), open(path, "rb") as file:
        data = file.read(file_stat.size + 1)
        now = file_stat_of(os.fstat(file.fileno()))
        if len(data) == file_stat.size and now.content_key == file_stat.content_key:
            return sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    return None


def _is_unchanged(path: bytes, file_stat: FileStat) -> bool:
    return file_stat_of(os.lstat(path)).content_key == file_stat.content_key
