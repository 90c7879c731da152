"""How far the log was read, and the state of the fold at that place: one file, replaced as a whole.

The file of a log is known by device, inode and the digest of its first line: an inode may be used
again, and a rotated file that was compressed has another one.
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from clew.atomic_file import write_atomically
from clew.store.errors import from_os
from clew.witness.kubernetes_audit.fold_state import FoldState

_LOG = logging.getLogger("clew.agents")


class Position(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in a file of the log."""

    device: int
    inode: int
    offset: int = 0
    first_line: str = ""
    """The digest of the file's first line; empty while it has none."""


class Checkpoint(msgspec.Struct, omit_defaults=True):
    position: Position | None = None
    state: FoldState = msgspec.field(default_factory=FoldState)


def load_checkpoint(path: Path) -> Checkpoint:
    """The checkpoint; an empty one if there is none. With an empty one the whole log is read, which
    repeats what is in the graph already, and does no harm."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Checkpoint)
    except FileNotFoundError:
        return Checkpoint()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _LOG.warning("the checkpoint %s is damaged, so the whole log is read: %s", path, error)
        return Checkpoint()
    except OSError as error:
        raise from_os(error, doing=f"read the checkpoint {path}") from error


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    try:
        write_atomically(path, msgspec.json.encode(checkpoint), sync=True)
    except OSError as error:
        raise from_os(error, doing=f"write the checkpoint {path}") from error
