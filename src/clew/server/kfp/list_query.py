"""What a list is asked for: how many, in which order, which of them, and from where on.

A page token is opaque to clients; it holds the end of its page with the order and the filter it
was made under, so that the next page needs nothing else, and another question is noticed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any

import msgspec

from clew.db.connection import Row
from clew.errors import UsageError
from clew.prov.graph import Graph
from clew.server.catalogue.list_pages import (
    COMPARISONS,
    Condition,
    Cursor,
    Field,
    ListQuery,
    Table,
    Value,
    fetch_page,
)
from clew.server.kfp.request_fields import Fields, parse_timestamp, parsed

DEFAULT_SIZE, MAX_SIZE = 20, 200
_ORDER = "created_at"
_NUMBERS = {
    1: "EQUALS",
    2: "NOT_EQUALS",
    3: "GREATER_THAN",
    5: "GREATER_THAN_EQUALS",
    6: "LESS_THAN",
    7: "LESS_THAN_EQUALS",
    8: "IN",
    9: "IS_SUBSTRING",
}
_ONE = ("string_value", "timestamp_value", "int_value", "long_value")
_MANY = ("string_values", "int_values", "long_values")
_MOST_VALUES = 500
_MOST_PREDICATES = 50


def list_page(
    graph: Graph,
    table: Table,
    asked: Fields,
    key: str,
    show: Callable[[list[Row]], list[dict[str, Any]]],
    **within: str,
) -> dict[str, Any]:
    """A page of `table` as it is answered, its rows under `key`."""
    order, wanted = asked.text("sort_by"), asked.text("filter")
    token = asked.text("page_token")
    end = None
    if token:
        before = _read(token)
        if (order and order != before.order) or (wanted and wanted != before.wanted):
            raise UsageError("page_token belongs to another sort_by or filter")
        order, wanted, end = before.order, before.wanted, Cursor(before.value, before.id)
    question = ListQuery(
        *_sorting(table, order),
        size=_size(asked.whole("page_size")),
        conditions=_conditions(table, wanted),
        after=end,
    )
    if end is not None and isinstance(end.value, int) != (question.sort.kind == "moment"):
        raise _no_token()
    found = fetch_page(graph, table, question, **within)
    document: dict[str, Any] = {key: show(found.rows)} if found.rows else {}
    document["total_size"] = found.total
    if found.end is not None:
        document["next_page_token"] = _written(_Token(order, wanted, found.end.value, found.end.id))
    return document


class _Token(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    order: str
    wanted: str
    value: Value
    id: str


def _written(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()


def _read(token: str) -> _Token:
    try:
        found = msgspec.json.decode(base64.urlsafe_b64decode(token.encode()), type=_Token)
    except (binascii.Error, msgspec.MsgspecError, UnicodeError) as error:
        raise _no_token() from error
    if "\0" in f"{found.value}{found.id}":
        raise _no_token()
    if isinstance(found.value, int) and not -(2**63) <= found.value < 2**63:
        raise _no_token()
    return found


def _no_token() -> UsageError:
    return UsageError("page_token is none that was given out here")


def _size(asked: int | None) -> int:
    if asked is not None and asked < 0:
        raise UsageError("page_size is negative")
    return min(asked or DEFAULT_SIZE, MAX_SIZE)


def _sorting(table: Table, text: str) -> tuple[Field, bool]:
    words = (text or _ORDER).split()
    way = words[1].lower() if len(words) > 1 else "asc"
    field = table.fields.get(words[0]) if words else None
    if field is None or field.kind == "pairs" or len(words) > 2 or way not in ("asc", "desc"):
        known = ", ".join(name for name, one in table.fields.items() if one.kind != "pairs")
        raise UsageError(f"sort_by {text!r} is no field with asc or desc", hint=f"one of {known}")
    return field, way == "desc"


def _conditions(table: Table, text: str) -> tuple[Condition, ...]:
    if not text:
        return ()
    found = parsed(text, "filter")
    predicates = found.get("predicates", []) if isinstance(found, dict) else None
    if not isinstance(predicates, list) or not all(isinstance(one, dict) for one in predicates):
        raise UsageError("filter has no predicates: a list of objects")
    if len(predicates) > _MOST_PREDICATES:
        raise UsageError(f"filter has more than {_MOST_PREDICATES} predicates")
    return tuple(_condition(table, Fields(one, "filter.")) for one in predicates)


def _condition(table: Table, asked: Fields) -> Condition:
    key, operation = asked.text("key"), asked.value("operation")
    if isinstance(operation, int) and not isinstance(operation, bool):
        operation = _NUMBERS.get(operation, operation)
    if operation not in _NUMBERS.values():
        known = ", ".join(_NUMBERS.values())
        raise UsageError(f"filter: there is no operation {operation!r}", hint=f"one of {known}")
    name, _, tag = key.partition(".")
    field = table.fields.get(name)
    if field is None or bool(tag) != (field.kind == "pairs"):
        raise UsageError(f"filter: {key!r} is no field", hint=f"one of {', '.join(table.fields)}")
    values = [_value(field, one) for one in _values(asked, operation)]
    if field.kind != "text" and operation == "IS_SUBSTRING":
        raise UsageError(f"filter: {key} is no text that could hold another")
    if field.kind == "pairs":
        if operation in COMPARISONS and operation.removeprefix("NOT_") != "EQUALS":
            raise UsageError(f"filter: tags are equal or not, not {operation}")
        values = [_pair(tag, str(one)) for one in values]
    return Condition(field, operation, tuple(values))


def _pair(tag: str, value: str) -> str:
    """As it stands in the JSON of all tags; no text within a value can look like it."""
    return msgspec.json.encode({tag: value}).decode()[1:-1].replace('":"', '": "', 1)


def _values(asked: Fields, operation: str) -> list[Value]:
    if operation == "IN":
        for name in _MANY:
            if (several := asked.part(name)) is not None:
                found = several.value("values")
                if not isinstance(found, list) or len(found) > _MOST_VALUES:
                    raise UsageError(f"filter: {name} holds no list of at most {_MOST_VALUES}")
                return [_one(Fields({name: value}, "filter."), name) for value in found]
        raise UsageError("filter: IN needs string_values, int_values or long_values")
    for name in _ONE:
        if asked.value(name) is not None:
            return [_one(asked, name)]
    raise UsageError(f"filter: {operation} needs a value: {', '.join(_ONE)}")


def _one(asked: Fields, name: str) -> Value:
    if name.startswith(("int", "long")):
        return asked.whole(name) or 0
    if name == "timestamp_value":
        asked.moment(name)
    return asked.text(name)


def _value(field: Field, value: Value) -> Value:
    if field.kind != "moment":
        return str(value)
    if isinstance(value, int):  # seconds
        return max(min(value, 2**33), -(2**33)) * 10**9
    try:
        return parse_timestamp(value)
    except ValueError as error:
        raise UsageError(f"filter: {value[:80]!r} is no time like 2030-01-31T09:00:00Z") from error
