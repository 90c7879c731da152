"""Answers that are not one document: contents, directories, and commands with progress."""

from __future__ import annotations

import io
import json
import os
import shutil
import tarfile
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote

import msgspec

from clew.api.delivery.http_client import error_from
from clew.api.remote.caller_paths import describe_client
from clew.api.remote.client import API, Client, D, parse
from clew.api.remote.messages import ContentRequest, RerunCommand, encode_message
from clew.documents.ids import Digest, Uid
from clew.errors import ClewError, Damaged, NotAllowed
from clew.safe_path import SafeDirectory, check_escaped

if TYPE_CHECKING:
    from clew.api.parameter_types import Say, StrPath

_WORK_SECONDS = 3600.0
"""The time-out of an export: enough for a large image."""
_HEARTBEAT_SECONDS = 60.0
"""The time-out between two messages of a running command; the server sends one every few
seconds."""


@contextmanager
def open_content(client: Client, target: str) -> Iterator[tuple[Digest, Iterator[bytes]]]:
    """Yield the digest of a content and its chunks."""
    asker = describe_client(client.settings, target)
    body = encode_message(ContentRequest(target, asker))
    path = f"{API}/commands/content"
    with client.server.open("POST", path, body, seconds=_WORK_SECONDS) as answer:
        yield json.loads(answer.line())["digest"], answer.pieces()


def export(
    client: Client,
    id: str,  # noqa: A002
    format: str,  # noqa: A002
    target: Path | BinaryIO | None,
    say: Say,
) -> bytes | Path | None:
    """Write an export of the server to `target`, or return it."""
    from clew.api.local.export import check_target, is_directory, make_executable, open_output

    check_target(format, target)
    path, query = f"{API}/{client.execution_path(id)}/export", {"format": format}
    with client.server.open("GET", path, query=query, seconds=_WORK_SECONDS) as answer:
        for warning in parse_warnings(answer.header("Clew-Warnings")):
            say(warning)
        if is_directory(format):
            assert isinstance(target, Path)
            unpack(answer.pieces(), target, escaped=format != "dockerfile")
            return target
        if target is None:
            return b"".join(answer.pieces())
        with open_output(target) as out:
            for piece in answer.pieces():
                out.write(piece)
        make_executable(format, target)
        return target if isinstance(target, Path) else None


def parse_warnings(header: str) -> list[str]:
    try:
        return msgspec.json.decode(unquote(header) or "[]", type=list[str])
    except msgspec.DecodeError as error:
        raise Damaged(f"the server sent a malformed header: {error}") from error


def verify(pieces: Iterator[bytes], digest: Digest) -> Iterator[bytes]:
    """Yield the chunks; raises Damaged at the end if they do not have the digest."""
    import blake3

    hasher = blake3.blake3()
    for piece in pieces:
        hasher.update(piece)
        yield piece
    if f"blake3:{hasher.hexdigest()}" != digest:
        raise Damaged(f"{digest} arrived damaged", hint="clew fsck")


def run_command(
    client: Client,
    command: RerunCommand,
    kind: type[D],
    say: Callable[[str], None],
    *,
    transfer: str | None = None,
) -> D:
    """Run a command on the server and return its result. Its messages go to `say`, and its output
    is printed. `transfer` names the transfer that sent the contents it needs."""
    server, body = client.server, encode_message(command)
    query = {"for": transfer} if transfer else {}
    path = f"{API}/commands/rerun"
    with server.open("POST", path, body, query=query, seconds=_HEARTBEAT_SECONDS) as answer:
        while line := answer.line():
            message = json.loads(line)
            if "said" in message:
                say(message["said"])
            elif "printed" in message:
                _print(message["to"], b64decode(message["printed"]))
            elif "error" in message:
                error = message["error"]
                names = error.get("secrets", ())
                raise error_from(error["code"], error["message"], error["hint"], 500, names)
            elif "answer" in message:
                return parse(message["answer"], kind, server)
    raise ClewError(
        f"{server.url} closed the connection before the command ended", hint="try again"
    )


def _print(descriptor: int, data: bytes) -> None:
    if descriptor not in (1, 2):  # any other is a file or a connection of ours
        raise Damaged(
            "the server prints to a file descriptor that is not allowed",
            hint="do not trust the server",
        )
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def check_new_directory(place: StrPath | None) -> None:
    if place is None:
        return
    path = Path(fspath(place))
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise NotAllowed(f"{place} exists already", hint="name a new directory with --keep")


def download_outputs(client: Client, uid: Uid, directory: Path) -> None:
    """Write the outputs of an execution to a new directory."""
    path = f"{API}/executions/{uid}/outputs"
    with client.server.open("GET", path, seconds=_WORK_SECONDS) as answer:
        unpack(answer.pieces(), directory)


def unpack(pieces: Iterator[bytes], place: Path, *, escaped: bool = True) -> None:
    """Extract a tar to the directory `place`, completely or not at all. `escaped`: it may contain
    no project and no repository (`clew.safe_path`)."""
    from clew.api.local.export import new_directory

    with new_directory(place) as draft:
        draft.mkdir()
        try:
            with tarfile.open(fileobj=io.BufferedReader(_Reader(pieces)), mode="r|") as tar:
                _extract(tar, draft, escaped=escaped)
        except (tarfile.TarError, ValueError, OverflowError) as error:
            raise Damaged(f"the server sent an invalid archive: {error}") from error


def _extract(tar: tarfile.TarFile, directory: Path, *, escaped: bool) -> None:
    """Write the files, directories and symbolic links of an archive, and refuse all else.

    Python's `data` filter checks files and directories. Links are written unchanged, which that
    filter does not allow; this is safe since nothing is written through a link.
    """
    places = SafeDirectory(directory)
    for member in tar:
        name = os.fsencode(os.path.normpath(member.name))
        if escaped:
            check_escaped(name)
        if member.issym():
            os.symlink(os.fsencode(member.linkname), places.join(name))  # noqa: PTH211 (bytes)
            continue
        plain = tarfile.data_filter(member, os.fspath(directory))
        if plain.isdir():
            if name != b".":
                places.make_directory(name)
        elif plain.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and not plain.issparse():
            _write_file(tar, plain, places.join(name))
        else:
            raise Damaged(f"the server sent {member.name[:200]!r}, which is neither file nor link")


def _write_file(tar: tarfile.TarFile, member: tarfile.TarInfo, place: bytes) -> None:
    source = tar.extractfile(member)
    assert source is not None
    with open(place, "xb") as file:
        shutil.copyfileobj(source, file)
        os.fchmod(file.fileno(), (member.mode or 0o600) & 0o777)
        file.flush()
        os.utime(file.fileno(), (member.mtime, member.mtime))


class _Reader(io.RawIOBase):
    """A sequence of chunks as a readable file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._left = self._left or next(self._pieces, b"")
        data, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)
