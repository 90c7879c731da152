"""Where the files of a story were fetched from, as far as its processes' own words tell."""

from __future__ import annotations

import os
from collections import defaultdict

from clew.redaction import Redactor
from clew.witness.downloads.url_detection import HUB, downloads, hugging_face
from clew.witness.syscalls.trace_state import TraceState


def origins(story: TraceState, redactor: Redactor) -> dict[bytes, str]:
    """Path → URL, with nothing secret in it."""
    written: dict[int, list[bytes]] = defaultdict(list)
    found: dict[bytes, str] = {}
    told = (variables.get("HF_ENDPOINT") for variables in story.variables.values())
    hub = next(filter(None, told), HUB)
    for line in story.paths:
        for image in line[-1].makers:
            written[image].append(line[-1].path)
        url = hugging_face(line[-1].path, story.links, hub=hub)
        if url is not None:
            found[line[-1].path] = url
    for image, paths in written.items():
        run = story.processes[image].exec
        if run is not None:
            words = [os.fsdecode(word) for word in run.arguments]
            found.update(downloads(words, paths, cwd=run.cwd))
    return {path: redactor.url(url) for path, url in found.items()}
