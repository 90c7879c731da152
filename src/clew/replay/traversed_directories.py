"""Drop dependencies on directories that a process only traversed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from clew.replay.reuse.dependency_index import path_and_parents
from clew.replay.reuse.subtree import Dependency


def drop_traversals(dependencies: list[Dependency]) -> list[Dependency]:
    """Reduce the times of traversed directories to their existence.

    Resolving a path examines every directory on the way, only to see whether it is a link, so the
    times of these directories do not matter.
    """
    directories = {dependency.path for dependency in dependencies if _is_directory(dependency)}
    links = {dependency.path for dependency in dependencies if dependency.kind == "link"}
    within = {os.path.dirname(dependency.path) for dependency in dependencies}

    def told(dependency: Dependency) -> Iterator[Dependency]:
        path = dependency.path
        walked = path in within and all(
            place in directories for place in path_and_parents(path)[1:-1]
        )
        if not _is_directory(dependency) or not walked:
            yield dependency
            return
        yield dependency._replace(kind="present", answer=dependency.answer.split(" ")[0])
        if path not in links:
            yield dependency._replace(kind="present", answer="plain")

    return [one for dependency in dependencies for one in told(dependency)]


def _is_directory(dependency: Dependency) -> bool:
    return dependency.kind == "times" and stat.S_ISDIR(int(dependency.answer.split(" ")[0], 8))
