"""Turn what a user looks for into SQL conditions on the index.

sort.py state:failed tag:baseline metrics.acc > 0.9 params.lr = 0.1 seconds > 60
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from clew.errors import UsageError
from clew.prov.queries.execution_list import like_pattern
from clew.prov.queries.tags import HAS_TAG
from clew.server.catalogue.activities.summary_row import METRIC, PARAMETER

STATES = ("pending", "running", "done", "succeeded", "failed", "broken", "canceled")
_MOST_TERMS = 50
_COMPARISON = re.compile(
    r"(?<!\S)(?:(metrics|params|parameters)\.(?:\"([^\"]{1,200})\"|([^\s=!<>\"]{1,200}))|(seconds))"
    r"\s*(!=|<=|>=|=|<|>)\s*(?:\"([^\"]{0,500})\"|([^\s\"]{1,500}))"
)
_WORD = re.compile(r'(?:[^\s"]|"[^"]*"|")+')
_OPERATORS = {"=": "=", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_VALUE = """
EXISTS (SELECT 1 FROM activity_value v WHERE v.activity = x.id AND v.kind = ? AND v.name = ?
        AND {})
"""
_TYPE = "x.type = ?"
TAGGED = HAS_TAG.replace("{}", "t.value = ?")
_OF_EXPERIMENT = """
x.experiment = ? OR x.experiment IN
  (SELECT e.id FROM experiment e WHERE e.project = x.project AND e.name = ?)
"""
_NAMED = r"lower(x.name) LIKE ? ESCAPE '\' OR x.name LIKE ? ESCAPE '\'"
_KEYS = {
    "type": (_TYPE, 1),
    "tag": (TAGGED, 1),
    "kind": ("x.kind = ?", 1),
    "agent": ("x.agent = ?", 1),
    "experiment": (_OF_EXPERIMENT, 2),
}
"""Conditions that take the value as it is, once or twice."""
_NOTED = r"""
(x.search LIKE ? ESCAPE '\' OR EXISTS (SELECT 1 FROM note n WHERE n.activity = x.id
   AND n.name <> 'untag' AND lower(n.name || '=' || n.value) LIKE ? ESCAPE '\'))
"""


@dataclass(frozen=True)
class Conditions:
    """A condition on the table `x`, and its parameters."""

    sql: str
    parameters: tuple[object, ...]


_OF_PIPELINE = "x.uid IN (SELECT id FROM run_request WHERE pipeline = ?)"
_OF_SCHEDULE = "x.uid IN (SELECT id FROM run_request WHERE schedule = ?)"

Term = tuple[str, list[object]]
"""A condition on `x`, and its parameters."""


def parse_conditions(
    query: str = "",
    *,
    states: Iterable[str] = (),
    types: Iterable[str] = (),
    kinds: Iterable[str] = (),
    tags: Iterable[str] = (),
    experiment: str | None = None,
    pipeline: str | None = None,
    schedule: str | None = None,
    since: datetime | None = None,
    archived: bool = False,
    more: Iterable[Term] = (),
) -> Conditions:
    """All of these must hold; of several states, types or kinds, one. Executions of tasks match
    only if their type is named."""
    asked = list(_parse_query(query))
    types = list(types)
    if not types and not any(sql == _TYPE for sql, _ in asked):
        types = ["execution", "run"]
    terms: list[Term] = [_is_one_of("x.type", types)] if types else []
    if not archived:
        terms.append(("x.archived = 0", []))
    if states := list(states):
        terms.append(_is_one_of("x.state", map(_check_state, states)))
    if kinds := list(kinds):
        terms.append(_is_one_of("x.kind", kinds))
    terms += [(TAGGED, [tag]) for tag in tags]
    if experiment is not None:
        terms.append(("x.experiment = ?", [experiment]))
    for sql, source in ((_OF_PIPELINE, pipeline), (_OF_SCHEDULE, schedule)):
        if source is not None:
            terms.append((sql, [source]))
    if since is not None:
        terms.append(("x.started >= ?", [since.timestamp()]))
    terms += [*asked, *more]
    if len(terms) > _MOST_TERMS:
        raise UsageError(f"the query has more than {_MOST_TERMS} terms", hint="use fewer words")
    parameters = [parameter for _, more in terms for parameter in more]
    return Conditions(" AND ".join(f"({sql})" for sql, _ in terms), tuple(parameters))


def _parse_query(query: str) -> Iterator[Term]:
    at = 0
    for match in _COMPARISON.finditer(query):
        yield from map(_parse_word, _WORD.findall(query[at : match.start()]))
        yield _parse_comparison(match)
        at = match.end()
    yield from map(_parse_word, _WORD.findall(query[at:]))


def _parse_word(text: str) -> Term:
    """A word; quotes keep the spaces of a phrase: `name:"first try"`."""
    word = text.replace('"', "") or text
    key, _, value = word.partition(":")
    if value:
        if key in _KEYS:
            sql, count = _KEYS[key]
            return sql, [value] * count
        if key == "state":
            return "x.state = ?", [_check_state(value)]
        if key == "name":
            # SQLite changes the case of ASCII letters only, so the text itself is tried as well.
            return _NAMED, [like_pattern(value.lower()), like_pattern(value)]
        if key == "made" and value in ("here", "elsewhere"):
            return "x.made_elsewhere = ?", [int(value == "elsewhere")]
    pattern = like_pattern(word.lower())
    return _NOTED, [pattern, pattern]


def _parse_comparison(match: re.Match[str]) -> Term:
    place, quoted, bare, column, symbol, quoted_value, bare_value = match.groups()
    operator = _OPERATORS[symbol]
    text = bare_value if quoted_value is None else quoted_value
    number = _parse_number(text)
    if column:
        if number is None:
            raise UsageError(f"{match[0]}: not a number", hint="write a number: seconds > 60")
        return f"x.seconds {operator} ?", [number]
    kind = METRIC if place == "metrics" else PARAMETER
    values: list[object] = [kind, quoted or bare]
    if operator in ("=", "<>") and kind == PARAMETER:
        # As JSON: true, "adam", "007", which is a text that looks like a number.
        same = "v.text IN (?, ?)" if number is None else "(v.text IN (?, ?) OR v.number = ?)"
        values += [text, json.dumps(text)] + ([] if number is None else [number])
        is_same = f"coalesce({same}, FALSE)"
        return _VALUE.replace("{}", is_same if operator == "=" else f"NOT {is_same}"), values
    if number is None:
        raise UsageError(
            f"{match[0]}: {text} is not a number", hint="write a number: metrics.accuracy > 0.9"
        )
    differs = "(v.number IS NULL OR v.number <> ?)" if operator == "<>" else None
    return _VALUE.replace("{}", differs or f"v.number {operator} ?"), [*values, number]


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < 1e300 else None


def _check_state(state: str) -> str:
    if state not in STATES:
        raise UsageError(f"there is no state {state[:100]}", hint=", ".join(STATES))
    return state


def _is_one_of(column: str, values: Iterable[str]) -> Term:
    wanted = list(values)
    return f"{column} IN ({', '.join('?' * len(wanted))})", [*wanted]
