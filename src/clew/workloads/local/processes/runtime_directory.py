"""A private directory with a short path, for sockets and port files.

Kernels listen on sockets there, whose paths may have only 107 bytes: a directory in the project
would be too long. A file in the project names it, so that the next server can remove what a killed
one left.
"""

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "clew-"


class RuntimeDirectory:
    def __init__(self, record: Path) -> None:
        """`record`: the file that names the directory."""
        self._record = record
        self._remove_previous()
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with suppress(OSError):
            record.write_text(str(self.path))

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        self._record.unlink(missing_ok=True)

    def _remove_previous(self) -> None:
        """Remove the directory of a killed server. The file may be damaged: only a directory of
        this user, with the right name and place, is removed."""
        with suppress(OSError, ValueError):
            previous = Path(self._record.read_text())
            is_ours = previous.parent == Path(tempfile.gettempdir()) and (
                previous.name.startswith(_PREFIX)
            )
            found = previous.lstat()
            if is_ours and stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
                shutil.rmtree(previous, ignore_errors=True)
