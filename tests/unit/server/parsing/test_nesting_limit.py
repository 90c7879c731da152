"""Values are as deep as they may be, and no deeper."""

from __future__ import annotations

from typing import Any

import pytest

from clew.errors import UsageError
from clew.server.parsing.nesting_limit import DEEPEST, check


def nested(depth: int, kind: type) -> Any:
    found: Any = kind()
    for _ in range(depth - 1):
        found = [found] if kind is list else {"in": found, "beside": 1}
    return found


@pytest.mark.parametrize("kind", [list, dict])
def test_depth(kind: type) -> None:
    check(nested(DEEPEST, kind), "it")
    for depth in (DEEPEST + 1, 100_000):
        with pytest.raises(UsageError, match="it is nested"):
            check(nested(depth, kind), "it")


def test_what_is_not_nested_is_not_deep() -> None:
    for value in (None, 1, "text", [], {}, [1, "a", None]):
        check(value, "it")
