"""The bytes: a content-addressed store in a directory, safe against crashes.

What belongs here: cutting content into chunks, packing, the index, leases, checking, sweeping,
trees. What never may: anything about executions, versions or who saw what. Content is named by its
digest alone. `docs/formats/store.md` describes the files, so that they outlive this program.

Imported by `witness`, `run` and `api`; only this room touches packs, chunks or `index.db`.
"""

from __future__ import annotations

from clew.store.content_store import Store
from clew.store.errors import Changed
from clew.store.types import Problem, Reclaimed, Report, Signature, Snapshot, Stored

__all__ = [
    "Changed",
    "Problem",
    "Reclaimed",
    "Report",
    "Signature",
    "Snapshot",
    "Store",
    "Stored",
]
