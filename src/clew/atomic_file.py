"""Replace a small file in one step: readers find the old content or the new, also after a crash."""

import os
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600, sync: bool = False) -> None:
    """Write the file beside its place, then rename it. With `sync`, the new content is on the disk
    before the name is."""
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(draft, flags, mode), "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
