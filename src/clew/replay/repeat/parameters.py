"""The named parameters of a command: `--C 1`, `--C=1`, `-C 1` or `C=1`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from clew.documents.executions.execution_list import Change
from clew.errors import UsageError

_WORD = re.compile(r"(-{0,2})([A-Za-z_][\w.-]*)(=?)(.*)", re.DOTALL)
_NUMBER = re.compile(r"-[\d.]")


class Parameter(NamedTuple):
    prefix: str
    """Dashes, if it is an option."""
    name: str
    value: str | None
    """None: it is a flag."""
    position: int
    """The word that holds the value, counted from 0."""
    lead: str
    """The text before the value in that word: `--C=`, or nothing."""


def list_parameters(command: Sequence[str]) -> Iterator[Parameter]:
    """The parameters in the order of the command."""
    for position, word in enumerate(command[1:], start=1):
        parsed = _WORD.fullmatch(word)
        if parsed is None or not (parsed[1] or parsed[3]):
            continue
        prefix, name, equals, value = parsed.groups()
        following = command[position + 1 : position + 2]
        if equals:
            yield Parameter(prefix, name, value, position, f"{prefix}{name}=")
        elif _has_value(following):
            yield Parameter(prefix, name, following[0], position + 1, "")
        else:
            yield Parameter(prefix, name, None, position, "")


def set_parameter(command: Sequence[str], name: str, value: str) -> tuple[int, str]:
    """The position of the word to replace, and the new word.

    `name` with dashes matches that option alone, otherwise any spelling. `-` and `_` are alike.
    """
    known = list(list_parameters(command))
    found = [
        (parameter.position, parameter.lead + value)
        for parameter in known
        if _matches(parameter, name) and parameter.value is not None
    ]
    if len(found) > 1:
        places = " or ".join(f"--set {position}={word}" for position, word in found)
        raise UsageError(f"the command has several parameters {name}", hint=places)
    if found:
        return found[0]
    for parameter in known:
        if _matches(parameter, name):
            spelling = parameter.prefix + parameter.name
            raise UsageError(f"{spelling} has no value to replace", hint="it is a flag")
    names = ", ".join(parameter.prefix + parameter.name for parameter in known)
    hint = f"it has: {names}" if names else "count its words: --set N=V"
    raise UsageError(f"the command has no parameter {name}", hint=hint)


def find_words(command: Sequence[str], parameters: Iterable[tuple[str, str]]) -> dict[int, str]:
    """The words that replace words of the command, by position. Each parameter has a name or a
    position, and its value."""
    words: dict[int, str] = {}
    for name, value in parameters:
        is_position = name.isascii() and name.isdecimal()
        position, word = (int(name), value) if is_position else set_parameter(command, name, value)
        words[position] = word
    return words


def list_changes(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """The parameters of two commands that differ; words without a name are counted from 0."""
    if len(before) != len(after):
        a, b = (
            {p.prefix + p.name: p.value or "" for p in list_parameters(c)} for c in (before, after)
        )
        return [Change(name=n, a=a.get(n), b=b.get(n)) for n in {**a, **b} if a.get(n) != b.get(n)]
    names = {p.position: p for p in list_parameters(after)}
    found = []
    for position, (old, new) in enumerate(zip(before, after, strict=True)):
        if old == new:
            continue
        known = names.get(position)
        if known and old.startswith(known.lead):
            lead = len(known.lead)
            found.append(Change(name=known.prefix + known.name, a=old[lead:], b=new[lead:]))
        else:
            found.append(Change(name=f"word {position}", a=old, b=new))
    return found


def list_possible_files(words: Iterable[str]) -> list[str]:
    """The words and values that may name a file: of `--data=FILE`, both the word and FILE."""
    found = []
    for word in words:
        name, _, value = word.partition("=")
        found += [text for text in (word, value if name else "") if text]
    return found


def _matches(parameter: Parameter, name: str) -> bool:
    spelling = _normalize(parameter.name)
    return _normalize(name) in (spelling, parameter.prefix + spelling)


def _normalize(name: str) -> str:
    dashes = len(name) - len(name.lstrip("-"))
    return name[:dashes] + name[dashes:].replace("_", "-")


def _has_value(following: Sequence[str]) -> bool:
    return bool(following) and (
        not following[0].startswith("-") or _NUMBER.match(following[0]) is not None
    )
