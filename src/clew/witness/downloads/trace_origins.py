"""Where the files of a state were fetched from, as far as its processes' own words tell."""

from __future__ import annotations

import os
from collections import defaultdict

from clew.redaction import Redactor
from clew.witness.downloads.url_detection import HUB, downloads, hugging_face
from clew.witness.syscalls.trace_state import TraceState


def origins(state: TraceState, redactor: Redactor) -> dict[bytes, str]:
    """Path → URL, with nothing secret in it."""
    written: dict[int, list[bytes]] = defaultdict(list)
    found: dict[bytes, str] = {}
    told = (variables.get("HF_ENDPOINT") for variables in state.variables.values())
    hub = next(filter(None, told), HUB)
    for history in state.versions:
        for image in history[-1].makers:
            written[image].append(history[-1].path)
        url = hugging_face(history[-1].path, state.links, hub=hub)
        if url is not None:
            found[history[-1].path] = url
    for image, paths in written.items():
        run = state.processes[image].exec
        if run is not None:
            words = [os.fsdecode(word) for word in run.arguments]
            found.update(downloads(words, paths, cwd=run.cwd))
    return {path: redactor.url(url) for path, url in found.items()}
