"""Find where the files of an execution came from: URLs of downloads, and Git commits."""

import os
import stat
from collections import defaultdict
from collections.abc import Container, Mapping

from clew.redaction import Redactor
from clew.witness.downloads.input_origins import find_download_urls, find_git_blobs
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


def find_input_origins(
    state: TraceState,
    redactor: Redactor,
    owners: Container[bytes],
    environ: Mapping[str, str] | None,
) -> dict[bytes, str]:
    """Path → URL or SWHID of files that were only read and belong to no package (`owners`).
    `environ`: the variables to run git with; None: no SWHIDs."""
    found = {
        first.path: first.file_stat
        for first, *later in state.versions
        if first.file_stat is not None and stat.S_ISREG(first.file_stat.mode)
        if first.maker is None and first.read and not later and first.path not in owners
    }
    blobs = find_git_blobs(found, environ) if environ is not None else {}
    return blobs | {path: redactor.url(url) for path, url in find_download_urls(found).items()}
