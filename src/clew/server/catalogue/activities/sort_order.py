"""The order of a list of activities, and the position at which its next page begins.

Every order has three keys: a number, a text and the activity's id. Activities without a value come
last, whichever way the others are sorted. The position holds the keys of the last row, so pages do
not shift when activities are added.
"""

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Any, Literal

from clew.errors import UsageError
from clew.server.catalogue.activities.summary_row import METRIC, PARAMETER, is_number

Order = Literal["asc", "desc"]
_NUMBERS = ("started", "ended", "seconds")
_TEXTS = ("name", "state", "type", "kind", "agent", "experiment", "error", "task")
_VALUE_SORT = re.compile(r"(metrics|params|parameters)\.(.{1,200})", re.DOTALL)
_MISSING, _TEXT = 1.7e308, 1.6e308
"""The keys of activities without a value, and of those with a text among numbers."""
_LONGEST_KEY = 600


@dataclass(frozen=True)
class Sorting:
    """`number` and `text` are SQL expressions on the tables x and s, `join` joins s."""

    sort: str
    order: Order
    number: str
    text: str
    join: str = ""
    parameters: tuple[object, ...] = ()

    @property
    def keys(self) -> str:
        return f"{self.number}, {self.text}, x.id"

    @property
    def order_by(self) -> str:
        return ", ".join(f"{key} {self.order}" for key in (self.number, self.text, "x.id"))

    @property
    def is_after(self) -> str:
        """A condition with three parameters: the row comes after a position."""
        return f"({self.keys}) {'>' if self.order == 'asc' else '<'} (?, ?, ?)"

    def encode_position(self, keys: tuple[Any, ...]) -> str:
        text = json.dumps([self.sort, self.order, *keys], separators=(",", ":"))
        return urlsafe_b64encode(text.encode()).decode().rstrip("=")

    def decode_position(self, position: str) -> tuple[float, str, int]:
        try:
            padded = position + "=" * (-len(position) % 4)
            sort, order, number, text, key = json.loads(urlsafe_b64decode(padded))
            valid = (
                (sort, order) == (self.sort, self.order)
                and isinstance(number, int | float)
                and (is_number(number) or abs(number) in (_MISSING, _TEXT))
                and isinstance(text, str)
                and len(text) <= _LONGEST_KEY
                and "\0" not in text
                and isinstance(key, int)
                and abs(key) < 1 << 63
                and bool(text.encode("utf-8", "strict") or True)
            )
        except (ValueError, TypeError, RecursionError):
            valid = False
        if not valid:
            raise UsageError("`after` is not a position in this list", hint="use `next`")
        return float(number), text, key


def parse_sorting(sort: str, order: Order) -> Sorting:
    """`sort`: a column, `metrics.NAME` or `params.NAME`."""
    sign = "" if order == "asc" else "-"
    missing, among = f"{sign}{_MISSING!r}", f"{sign}{_TEXT!r}"
    if sort in _NUMBERS:
        return Sorting(sort, order, f"coalesce(x.{sort}, {missing})", "x.uid")
    if sort in _TEXTS:
        rank = f"CASE WHEN x.{sort} IS NULL THEN {missing} ELSE 0 END"
        number = f"CAST({rank} AS DOUBLE PRECISION)"
        return Sorting(sort, order, number, f"coalesce(lower(x.{sort}), '')")
    match = _VALUE_SORT.fullmatch(sort)
    if match is None:
        columns = ", ".join((*_NUMBERS, *_TEXTS))
        raise UsageError(
            f"cannot sort by {sort[:100]}", hint=f"{columns}, metrics.NAME or params.NAME"
        )
    kind = METRIC if match[1] == "metrics" else PARAMETER
    number = f"coalesce(s.number, CASE WHEN s.text IS NULL THEN {missing} ELSE {among} END)"
    join = "LEFT JOIN activity_value s ON s.activity = x.id AND s.kind = ? AND s.name = ?"
    text = "CASE WHEN s.number IS NULL THEN coalesce(lower(s.text), '') ELSE '' END"
    return Sorting(sort, order, number, text, join, (kind, match[2]))
