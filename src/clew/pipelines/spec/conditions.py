"""The conditions of If, Elif and Else: a small closed grammar, parsed and never evaluated as code.

    condition = term { " && " term }
    term      = "!(" comparison ")" | comparison
    comparison = operand ("==" | "!=" | ">" | ">=" | "<" | "<=") operand
    operand   = inputs.parameter_values['name'] | int(operand) | double(operand)
              | 'text' | number | true | false

The SDK does not escape quotes inside a text, so a text ends at the quote that an operator, the
end of its term, or a closing parenthesis follows.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_VALUE = re.compile(r"inputs\.(?:parameter_values|parameters)\['([^']*)'\](?:\.string_value)?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_TEXT = re.compile(r"'(.*?)'(?=\s*(?:==|!=|>=|<=|>|<)|\s*\)|\s*&&|\s*\|\||\s*$)", re.DOTALL)
_OPERATOR = re.compile(r"\s*(==|!=|>=|<=|>|<)\s*")
_CAST = re.compile(r"(int|double)\(\s*")


Fill = Callable[[Any], Any]


class InvalidCondition(ValueError):
    """The text is not of the grammar; the message says where it stops making sense."""


class CannotCompare(ValueError):
    """The condition is well formed, but its values are missing or cannot be compared."""


class Operand(Struct, frozen=True):
    constant: Any = None
    name: str | None = None
    """The input it is the value of, where it is no constant."""
    cast: str | None = None

    def value(self, inputs: Mapping[str, Any], fill: Fill) -> Any:
        if self.name is not None and self.name not in inputs:
            raise CannotCompare(f"the condition asks for {self.name}, which has no value")
        found = fill(self.constant) if self.name is None else inputs[self.name]
        if self.cast is None:
            return found
        try:
            return int(found) if self.cast == "int" else float(found)
        except (TypeError, ValueError) as error:
            raise CannotCompare(f"{found!r} is no {self.cast}") from error


class Comparison(Struct, frozen=True):
    left: Operand
    sign: str
    right: Operand
    negated: bool = False

    def holds(self, inputs: Mapping[str, Any], fill: Fill) -> bool:
        left, right = self.left.value(inputs, fill), self.right.value(inputs, fill)
        if isinstance(left, bool) != isinstance(right, bool) and self.sign in ("==", "!="):
            left, right = _parse_boolean(left), _parse_boolean(right)
        try:
            return _OPERATORS[self.sign](left, right) is not self.negated
        except TypeError as error:
            raise CannotCompare(f"{left!r} {self.sign} {right!r} cannot be compared") from error


class Condition(Struct, frozen=True):
    """All of these must hold."""

    text: str
    terms: tuple[Comparison, ...]

    def holds(self, inputs: Mapping[str, Any], fill: Fill = lambda constant: constant) -> bool:
        """`fill` gives a constant the values of its placeholders."""
        return all(term.holds(inputs, fill) for term in self.terms)


def parse_condition(text: str) -> Condition:
    """Read a condition; NotACondition where it is none."""
    reader = _Parser(text)
    terms = [reader.term()]
    while reader.take("&&"):
        terms.append(reader.term())
    reader.finish()
    return Condition(text, tuple(terms))


def _parse_boolean(value: Any) -> Any:
    """A text that says true or false, as that: parameters of both kinds are compared."""
    return {"true": True, "false": False}.get(value.lower(), value) if _is_text(value) else value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def term(self) -> Comparison:
        negated = self.take("!")
        closing = self.take("(")
        if negated and not closing:
            raise self._wrong("( after !")
        left = self._operand()
        sign = self._match(_OPERATOR)
        if sign is None:
            raise self._wrong("a comparison")
        right = self._operand()
        if closing and not self.take(")"):
            raise self._wrong(")")
        return Comparison(left, sign[1], right, negated)

    def take(self, word: str) -> bool:
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        if not self._text.startswith(word, self._at):
            return False
        self._at += len(word)
        return True

    def finish(self) -> None:
        if self._text[self._at :].strip():
            raise self._wrong("&& or the end")

    def _operand(self) -> Operand:
        self.take("")
        if cast := self._match(_CAST):
            inner = self._operand()
            if inner.cast or not self.take(")"):
                raise self._wrong(")")
            return Operand(inner.constant, inner.name, cast[1])
        if named := self._match(_VALUE):
            return Operand(name=named[1])
        if quoted := self._match(_TEXT):
            return Operand(quoted[1])
        if number := self._match(_NUMBER):
            digits = number[0]
            return Operand(int(digits) if digits.lstrip("-").isdigit() else float(digits))
        for word, value in (("true", True), ("false", False)):
            if self.take(word):
                return Operand(value)
        raise self._wrong("a value")

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _wrong(self, wanted: str) -> InvalidCondition:
        return InvalidCondition(f"expected {wanted} at: {self._text[self._at :][:60] or 'the end'}")
