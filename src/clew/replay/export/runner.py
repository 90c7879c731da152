"""A self-contained runner: one executable file that runs an execution where Clew is not installed.

The file is a Python ZIP application: `runner_main.py` as its `__main__`, `execution.json`, and the
contents of the files. It needs Python and bubblewrap, and nothing of the recorded programs.
"""

import json
import os
import zipfile
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import BinaryIO

from clew.documents.ids import Digest
from clew.replay.export.portability import PortableExecution

_INTERPRETER = b"#!/usr/bin/env python3\n"
ReadContent = Callable[[Digest], Iterable[bytes]]


def write_runner(execution: PortableExecution, out: BinaryIO, *, read: ReadContent) -> None:
    """Write the file; its writer must make it executable."""
    plan = execution.plan
    entries = []
    contents: dict[Digest, str] = {}  # the member of each digest
    for path, entry in sorted(plan.initial_files.entries.items()):
        member = None
        if entry.kind == "file":
            member = contents.setdefault(entry.digest, f"files/{len(contents)}")
        _, _, mode = execution.ownership(path, entry)
        entries.append(
            {
                "path": os.fsdecode(path),
                "kind": entry.kind,
                "mode": mode,
                "mtime": entry.mtime,
                "size": entry.size,
                "target": os.fsdecode(entry.target),
                "content": member,
            }
        )
    document = {
        "id": execution.id,
        "command": plan.command,
        "cwd": os.fspath(plan.cwd),
        "variables": dict(plan.environ),
        "missing_variables": execution.redacted,
        "user": execution.user,
        "entries": entries,
    }
    out.write(_INTERPRETER)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as file:
        main = files("clew.replay.export").joinpath("runner_main.py").read_text()
        file.writestr("__main__.py", main)
        file.writestr("execution.json", json.dumps(document))
        for digest, member in contents.items():
            with file.open(member, "w", force_zip64=True) as target:
                for piece in read(digest):
                    target.write(piece)
