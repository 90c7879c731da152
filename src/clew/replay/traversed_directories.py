"""Folders that were only on the way to something."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from clew.replay.reuse.dependency_index import above
from clew.replay.reuse.subtree import Need


def without_steps(needs: list[Need]) -> list[Need]:
    """Who resolves a path looks at every folder on its way, and wants to know only whether it is a
    link: the times of folders that were asked for like that, with all above them, say nothing."""
    folders = {need.path for need in needs if _of_folder(need)}
    links = {need.path for need in needs if need.kind == "link"}
    within = {os.path.dirname(need.path) for need in needs}

    def told(need: Need) -> Iterator[Need]:
        path = need.path
        walked = path in within and all(place in folders for place in above(path)[1:-1])
        if not _of_folder(need) or not walked:
            yield need
            return
        yield need._replace(kind="present", answer=need.answer.split(" ")[0])
        if path not in links:
            yield need._replace(kind="present", answer="plain")

    return [one for need in needs for one in told(need)]


def _of_folder(need: Need) -> bool:
    return need.kind == "times" and stat.S_ISDIR(int(need.answer.split(" ")[0], 8))
