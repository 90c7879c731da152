"""A content-addressed store in a directory, safe against crashes.

Contains chunking, packs, the index, leases, `fsck`, `gc` and remotes. Never contains anything about
executions or versions: content is named by its digest alone. `docs/formats/store.md` specifies the
files. Imported by `witness`, `run` and the packages above; no other package opens packs or
`index.db`. Independent of `prov`.
"""

from clew.store.content_store import Store
from clew.store.errors import Changed
from clew.store.types import CheckReport, Problem, Reclaimed, Signature, Stored

__all__ = [
    "Changed",
    "CheckReport",
    "Problem",
    "Reclaimed",
    "Signature",
    "Store",
    "Stored",
]
