"""The caller's machine and working directory, sent with each query so that the server can resolve
paths of this machine."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import msgspec

from clew.documents.ids import Digest
from clew.errors import NotAllowed
from clew.settings import Settings, machine_id

if TYPE_CHECKING:
    from clew.api.local.versions import PathResolver

_PIECE = 1 << 20


class ClientPaths(msgspec.Struct):
    """The location of the caller. A path that is not UTF-8 is text with surrogate escapes."""

    machine: str
    cwd: str
    agent: str
    places: dict[str, str] = {}
    """Where paths lead that lie behind links."""
    digests: dict[str, Digest] = {}
    """The digests of files now, by their paths."""

    def here(self) -> PathResolver:
        from clew.api.local.versions import PathResolver

        return PathResolver(
            self.machine, self._locate, lambda path: self.digests.get(os.fsdecode(path))
        )

    def _locate(self, path: bytes) -> bytes:
        found = self.places.get(os.fsdecode(path))
        if found is not None:
            return os.fsencode(found)
        return os.path.normpath(os.path.join(os.fsencode(self.cwd), path))


def describe_client(settings: Settings, text: str) -> ClientPaths:
    """The location of this process, and what the paths that `text` may contain lead to."""
    from clew.witness.environment import find_user_name

    path = os.path.realpath(os.fsencode(text))
    digest = hash_current_file(path)
    return ClientPaths(
        machine=machine_id(settings),
        cwd=os.path.realpath("."),
        agent=find_user_name(os.getuid()),
        places={word: os.path.realpath(word) for word in _words(text)},
        digests={os.fsdecode(path): digest} if digest else {},
    )


def list_named_files(text: str) -> set[str]:
    """The files of this machine that `text` may name."""
    return {os.path.realpath(word) for word in _words(text)}


def _words(text: str) -> set[str]:
    """The parts of `text` that may be a path: all of it, or what is between : and @."""
    found = {text, text.partition(":")[2]}
    found |= {word.rpartition("@")[0] for word in found}
    return {word for word in found if word and "\0" not in word}


def hash_current_file(path: bytes) -> Digest | None:
    """The digest of the file at `path` now; None if there is no file."""
    import blake3

    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        digest = blake3.blake3(max_threads=blake3.blake3.AUTO)
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    except OSError as error:
        shown = os.fsdecode(path)
        raise NotAllowed(f"cannot read {shown}: {error.strerror}", hint=f"ls -l {shown}") from error
    return Digest(f"blake3:{digest.hexdigest()}")
