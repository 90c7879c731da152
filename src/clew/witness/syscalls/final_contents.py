"""Find the content that an execution left in each file, and the version that it belongs to.

A file may change between the last record of the trace and the moment when it is read: by a process
of the execution that is still writing, or by another program. The times tell which.
"""

import os
import stat

from clew.witness.syscalls.content_capture import KnownContent, is_file
from clew.witness.syscalls.trace_contents import TraceContents
from clew.witness.syscalls.trace_state import TraceState
from clew.witness.syscalls.version_tracker import ObservedVersion, VersionTracker, file_stat_of

FinalContent = tuple[KnownContent, os.stat_result] | str
"""The content of a file at the end, with its `stat`; or why there is none."""


def find_final_contents(
    state: TraceState, contents: TraceContents
) -> dict[ObservedVersion, FinalContent]:
    """The content of each file that the execution wrote and left. Collected before the first
    event is built: the content of a moved file is found at its final path."""
    final: dict[ObservedVersion, FinalContent] = {}
    for history in state.versions:
        observed = history[-1]
        if observed.maker is not None and not observed.gone and is_file(observed.path):
            final.update((_find_version(state.versions, observed, contents.final(observed.path)),))
    return final


def _find_version(
    versions: VersionTracker, observed: ObservedVersion, final: FinalContent
) -> tuple[ObservedVersion, FinalContent]:
    """The version that the final content belongs to: a new one if its makers went on writing
    after it was read; none of theirs if the file changed after they had ended."""
    if isinstance(final, str):
        return observed, final
    now = final[1]
    key = file_stat_of(now).content_key
    same = observed.file_stat is not None and observed.file_stat.content_key == key
    if same and not observed.uncertain:
        return observed, final
    # the opener may have written after its child
    opener = () if observed.opener is None else (observed.opener,)
    if versions.all_ended((*observed.makers, *opener), now.st_mtime_ns):
        return observed, "changed by another program after it was written"
    if observed.uncertain or (observed.read and observed.file_stat is not None):
        observed = versions.add_next(
            observed, file_stat_of(now), at=max(observed.at, now.st_mtime_ns)
        )
    return observed, final


def settle_opener(observed: ObservedVersion, now: os.stat_result) -> None:
    """Add the opener of a file to its makers if the file changed after its children were done."""
    if observed.opener is None or observed.inherited is None:
        return
    if (observed.inherited.size, observed.inherited.mtime) != (now.st_size, now.st_mtime_ns):
        observed.makers.setdefault(observed.opener, "write")


def is_changed_while_read(
    state: TraceState, contents: TraceContents, observed: ObservedVersion
) -> bool:
    """Whether another program changed this input while one of its readers still ran: the bytes
    that were read are then uncertain."""
    if observed.gone or observed.file_stat is None or not stat.S_ISREG(observed.file_stat.mode):
        return False
    try:
        status = contents.files.lstat(observed.path)
    except OSError:
        return False
    if status.st_mtime_ns == observed.file_stat.mtime and status.st_size == observed.file_stat.size:
        return False
    now = file_stat_of(status)
    if now.inode_key != observed.file_stat.inode_key:
        return False
    inputs_of_process = state.inputs_of_process.items()
    readers = [
        image
        for image, inputs in inputs_of_process
        if any(used is observed for used, _ in inputs.used)
    ]
    return not state.versions.all_ended(readers, now.mtime)
