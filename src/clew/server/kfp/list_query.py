"""The parameters of list requests: page size, sorting, filter and page token.

A page token is opaque to clients. It contains the last row of its page, the sorting and the filter,
so that the next page needs nothing else, and a change of sorting or filter is refused.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any

import msgspec

from clew.bounded_documents import load_json
from clew.db.connection_interface import Row
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
from clew.server.kfp.request_fields import Fields, parse_timestamp

DEFAULT_SIZE, MAX_SIZE = 20, 200
_DEFAULT_SORT = "created_at"
_OPERATIONS = {
    1: "EQUALS",
    2: "NOT_EQUALS",
    3: "GREATER_THAN",
    5: "GREATER_THAN_EQUALS",
    6: "LESS_THAN",
    7: "LESS_THAN_EQUALS",
    8: "IN",
    9: "IS_SUBSTRING",
}
_SINGLE_VALUES = ("string_value", "timestamp_value", "int_value", "long_value")
_VALUE_LISTS = ("string_values", "int_values", "long_values")
_MAX_VALUES = 500
_MAX_PREDICATES = 50


def list_page(
    graph: Graph,
    table: Table,
    params: Fields,
    key: str,
    show: Callable[[list[Row]], list[dict[str, Any]]],
    **within: str,
) -> dict[str, Any]:
    """The response with one page of `table`, its rows under `key`."""
    sort_by, filter_text = params.text("sort_by"), params.text("filter")
    end = None
    if page_token := params.text("page_token"):
        previous = _decode_token(page_token)
        if (sort_by and sort_by != previous.sort_by) or (
            filter_text and filter_text != previous.filter_text
        ):
            raise UsageError("page_token belongs to another sort_by or filter")
        sort_by, filter_text = previous.sort_by, previous.filter_text
        end = Cursor(previous.value, previous.id)
    query = ListQuery(
        *_parse_sort(table, sort_by),
        size=_page_size(params.integer("page_size")),
        conditions=_parse_filter(table, filter_text),
        after=end,
    )
    if end is not None and isinstance(end.value, int) != (query.sort.kind == "moment"):
        raise _invalid_token()
    page = fetch_page(graph, table, query, **within)
    document: dict[str, Any] = {key: show(page.rows)} if page.rows else {}
    document["total_size"] = page.total
    if page.end is not None:
        token = _Token(sort_by, filter_text, page.end.value, page.end.id)
        encoded = base64.urlsafe_b64encode(msgspec.json.encode(token))
        document["next_page_token"] = encoded.decode()
    return document


class _Token(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    sort_by: str
    filter_text: str
    value: Value
    id: str


def _decode_token(token: str) -> _Token:
    try:
        decoded = msgspec.json.decode(base64.urlsafe_b64decode(token.encode()), type=_Token)
    except (binascii.Error, msgspec.MsgspecError, UnicodeError) as error:
        raise _invalid_token() from error
    if "\0" in f"{decoded.value}{decoded.id}":
        raise _invalid_token()
    if isinstance(decoded.value, int) and not -(2**63) <= decoded.value < 2**63:
        raise _invalid_token()
    return decoded


def _invalid_token() -> UsageError:
    return UsageError("page_token is not valid")


def _page_size(requested: int | None) -> int:
    if requested is not None and requested < 0:
        raise UsageError("page_size is negative")
    return min(requested or DEFAULT_SIZE, MAX_SIZE)


def _parse_sort(table: Table, text: str) -> tuple[Field, bool]:
    words = (text or _DEFAULT_SORT).split()
    direction = words[1].lower() if len(words) > 1 else "asc"
    field = table.fields.get(words[0]) if words else None
    if field is None or field.kind == "pairs" or len(words) > 2 or direction not in ("asc", "desc"):
        known = ", ".join(name for name, field in table.fields.items() if field.kind != "pairs")
        raise UsageError(
            f"sort_by {text!r} must be a field, optionally with asc or desc", hint=f"one of {known}"
        )
    return field, direction == "desc"


def _parse_filter(table: Table, text: str) -> tuple[Condition, ...]:
    if not text:
        return ()
    document = load_json(text, "filter")
    predicates = document.get("predicates", []) if isinstance(document, dict) else None
    if not isinstance(predicates, list) or not all(isinstance(item, dict) for item in predicates):
        raise UsageError("filter: predicates must be a list of objects")
    if len(predicates) > _MAX_PREDICATES:
        raise UsageError(f"filter has more than {_MAX_PREDICATES} predicates")
    return tuple(_parse_predicate(table, Fields(item, "filter.")) for item in predicates)


def _parse_predicate(table: Table, params: Fields) -> Condition:
    key, operation = params.text("key"), params.value("operation")
    if isinstance(operation, int) and not isinstance(operation, bool):
        operation = _OPERATIONS.get(operation, operation)
    if operation not in _OPERATIONS.values():
        known = ", ".join(_OPERATIONS.values())
        raise UsageError(f"filter: there is no operation {operation!r}", hint=f"one of {known}")
    name, _, tag = key.partition(".")
    field = table.fields.get(name)
    if field is None or bool(tag) != (field.kind == "pairs"):
        raise UsageError(
            f"filter: there is no field {key!r}", hint=f"one of {', '.join(table.fields)}"
        )
    values = [_convert_value(field, value) for value in _read_values(params, operation)]
    if field.kind != "text" and operation == "IS_SUBSTRING":
        raise UsageError(f"filter: {key} is not a string: IS_SUBSTRING does not apply")
    if field.kind == "pairs":
        if operation in COMPARISONS and operation.removeprefix("NOT_") != "EQUALS":
            raise UsageError(f"filter: {operation} does not apply to tags")
        values = [_tag_fragment(tag, str(value)) for value in values]
    return Condition(field, operation, tuple(values))


def _tag_fragment(tag: str, value: str) -> str:
    """One tag as it appears in the stored JSON of all tags; a value cannot contain this text,
    because its quotes are escaped."""
    return msgspec.json.encode({tag: value}).decode()[1:-1].replace('":"', '": "', 1)


def _read_values(params: Fields, operation: str) -> list[Value]:
    if operation == "IN":
        for name in _VALUE_LISTS:
            if (several := params.object(name)) is not None:
                values = several.value("values")
                if not isinstance(values, list) or len(values) > _MAX_VALUES:
                    raise UsageError(f"filter: {name} must be a list of at most {_MAX_VALUES}")
                return [_read_value(Fields({name: value}, "filter."), name) for value in values]
        raise UsageError("filter: IN needs string_values, int_values or long_values")
    for name in _SINGLE_VALUES:
        if params.value(name) is not None:
            return [_read_value(params, name)]
    raise UsageError(f"filter: {operation} needs a value: {', '.join(_SINGLE_VALUES)}")


def _read_value(params: Fields, name: str) -> Value:
    if name.startswith(("int", "long")):
        return params.integer(name) or 0
    if name == "timestamp_value":
        params.timestamp(name)
    return params.text(name)


def _convert_value(field: Field, value: Value) -> Value:
    if field.kind != "moment":
        return str(value)
    if isinstance(value, int):  # seconds since 1970
        return max(min(value, 2**33), -(2**33)) * 10**9
    try:
        return parse_timestamp(value)
    except ValueError as error:
        raise UsageError(
            f"filter: {value[:80]!r} is not a time like 2030-01-31T09:00:00Z"
        ) from error
