"""Find the URLs that the files of an execution were downloaded from."""

from __future__ import annotations

import os
from collections import defaultdict

from clew.redaction import Redactor
from clew.witness.downloads.url_detection import HUB, hugging_face_url, pair_downloads
from clew.witness.syscalls.trace_state import TraceState


def find_origins(state: TraceState, redactor: Redactor) -> dict[bytes, str]:
    """Path → URL, with secrets masked."""
    written: dict[int, list[bytes]] = defaultdict(list)
    urls: dict[bytes, str] = {}
    endpoints = (variables.get("HF_ENDPOINT") for variables in state.variables.values())
    hub = next(filter(None, endpoints), HUB)
    for history in state.versions:
        for image in history[-1].makers:
            written[image].append(history[-1].path)
        url = hugging_face_url(history[-1].path, state.links, hub=hub)
        if url is not None:
            urls[history[-1].path] = url
    for image, paths in written.items():
        executed = state.processes[image].exec
        if executed is not None:
            command = [os.fsdecode(word) for word in executed.arguments]
            urls.update(pair_downloads(command, paths, cwd=executed.cwd))
    return {path: redactor.url(url) for path, url in urls.items()}
