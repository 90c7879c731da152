"""Find the word of a command that holds a named parameter: `--C 1`, `--C=1`, `-C 1` or `C=1`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from clew.errors import UsageError

_WORD = re.compile(r"(-{0,2})([A-Za-z_][\w.-]*)(=?)(.*)", re.DOTALL)
_NUMBER = re.compile(r"-[\d.]")


def set_parameter(command: Sequence[str], name: str, value: str) -> tuple[int, str]:
    """The position of the word to replace, and the new word.

    `name` with dashes matches that option alone, otherwise any spelling. `-` and `_` are alike.
    """
    found: list[tuple[int, str]] = []
    known: list[str] = []
    for position, word in enumerate(command[1:], start=1):
        parsed = _WORD.fullmatch(word)
        if parsed is None or not (parsed[1] or parsed[3]):
            continue
        prefix, spelling, equals, _ = parsed.groups()
        known.append(prefix + spelling)
        if _normalize(name) not in (_normalize(spelling), prefix + _normalize(spelling)):
            continue
        if equals:
            found.append((position, f"{prefix}{spelling}={value}"))
        elif _has_value(command[position + 1 : position + 2]):
            found.append((position + 1, value))
        else:
            raise UsageError(f"{prefix}{spelling} has no value to replace", hint="it is a flag")
    if len(found) > 1:
        places = " or ".join(f"--set {position}={word}" for position, word in found)
        raise UsageError(f"the command has several parameters {name}", hint=places)
    if not found:
        hint = f"it has: {', '.join(known)}" if known else "count its words: --set N=V"
        raise UsageError(f"the command has no parameter {name}", hint=hint)
    return found[0]


def possible_files(words: Iterable[str]) -> list[str]:
    """The words and values that may name a file: of `--data=FILE`, both the word and FILE."""
    return [text for word in words for text in (word, word.partition("=")[2]) if text]


def _normalize(name: str) -> str:
    dashes = len(name) - len(name.lstrip("-"))
    return name[:dashes] + name[dashes:].replace("_", "-")


def _has_value(following: Sequence[str]) -> bool:
    return bool(following) and (
        not following[0].startswith("-") or _NUMBER.match(following[0]) is not None
    )
