"""Check that a remote can be read, without pushing or pulling anything."""

from collections.abc import Mapping
from pathlib import Path

from clew.store.remotes import open_remote
from clew.store.remotes.object_storage import open_storage


def count_executions(url: str, options: Mapping[str, str], *, cache: Path) -> int | None:
    """How many executions the remote has; None: nothing is there yet, and the first push makes it.
    The errors of `open_remote` say why it cannot be read."""
    storage = open_storage(url, options)
    if not storage.top_level_names() and storage.get("format", most=1024) is None:
        return None
    with open_remote(url, options, cache=cache) as remote:
        return len({name[:32] for name in remote.documents()})
