"""Matching of a text against many globs at once, as `fnmatch.fnmatchcase` would match each.

Most globs are a text with `*` before it, behind it or both. Those are compared as plain text: to
compile an expression takes longer than most executions need it for.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache


def escape(path: str) -> str:
    """A glob that matches this path alone: `glob.escape`, without importing `glob`."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)


@cache
def matcher(globs: tuple[str, ...]) -> Callable[[str], bool]:
    """A test whether any of the globs matches."""
    exact = set[str]()
    ends, inside, others = list[str](), list[str](), list[str]()
    for glob in globs:
        core = glob.strip("*")
        if not core or any(character in core for character in "*?["):
            others.append(glob)
        elif glob == core:
            exact.add(core)
        elif glob == f"*{core}":
            ends.append(core)
        elif glob == f"*{core}*":
            inside.append(core)
        else:
            others.append(glob)
    suffixes = tuple(ends)
    wild = [(max(_literals(glob), key=len), glob) for glob in others]

    def matches(text: str) -> bool:
        return (
            text in exact
            or text.endswith(suffixes)
            or any(core in text for core in inside)
            or any(part in text and fnmatchcase(text, glob) for part, glob in wild)
        )

    return matches


def _literals(glob: str) -> list[str]:
    """The stretches of a glob that must be in what it matches."""
    return [""] if "[" in glob else glob.replace("?", "*").split("*")
