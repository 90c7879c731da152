"""Texts that nest without end are refused before anybody goes down into them."""

from __future__ import annotations

import pytest

from clew.pipelines.spec.document_part import Refused
from clew.pipelines.spec.nesting_limit import DEEPEST, too_deep
from clew.pipelines.spec.parser import parse


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000, "? " * 100_000])
def test_what_would_end_the_reader_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse(text)


def test_indentation_is_nesting_too() -> None:
    deep = "\n".join(" " * level + "a:" for level in range(DEEPEST + 5))
    assert too_deep(deep)


def test_what_is_only_long_is_read() -> None:
    assert not too_deep("[a]\n" * 5000)
    assert not too_deep("a: '" + "[" * 5000 + "'")
    assert not too_deep("- " * 10 + "a")


@pytest.mark.parametrize("text", ["2001-99-99", "{" * 100_000, '{"a":' * 100_000])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        parse(text)
