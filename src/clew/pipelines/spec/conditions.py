"""The conditions of If, Elif and Else: a small closed grammar, parsed and never evaluated as code.

    condition = term { " && " term }
    term      = "!(" comparison ")" | comparison
    comparison = operand ("==" | "!=" | ">" | ">=" | "<" | "<=") operand
    operand   = inputs.parameter_values['name'] | int(operand) | double(operand)
              | 'text' | number | true | false

The SDK does not escape quotes inside a text, so a text ends at the quote that an operator, the
end of its term, or a closing parenthesis follows.
"""

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
    """The text does not match the grammar; the message says where."""


class CannotCompare(ValueError):
    """The values of a valid condition are missing or cannot be compared."""


class Operand(Struct, frozen=True):
    constant: Any = None
    name: str | None = None
    """The input whose value it is, if it is not a constant."""
    cast: str | None = None

    def value(self, inputs: Mapping[str, Any], fill: Fill) -> Any:
        if self.name is not None and self.name not in inputs:
            raise CannotCompare(f"the condition uses {self.name}, which has no value")
        value = fill(self.constant) if self.name is None else inputs[self.name]
        if self.cast is None:
            return value
        try:
            return int(value) if self.cast == "int" else float(value)
        except (TypeError, ValueError) as error:
            raise CannotCompare(f"{value!r} is not a valid {self.cast}") from error


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
    """A conjunction: all terms must hold."""

    text: str
    terms: tuple[Comparison, ...]

    def holds(self, inputs: Mapping[str, Any], fill: Fill = lambda constant: constant) -> bool:
        """`fill` replaces the placeholders in a constant."""
        return all(term.holds(inputs, fill) for term in self.terms)


def parse_condition(text: str) -> Condition:
    """Raises InvalidCondition."""
    parser = _Parser(text)
    terms = [parser.term()]
    while parser.accept("&&"):
        terms.append(parser.term())
    parser.finish()
    return Condition(text, tuple(terms))


def _parse_boolean(value: Any) -> Any:
    """`"true"` as True: a boolean parameter may be compared with a text."""
    if not isinstance(value, str):
        return value
    return {"true": True, "false": False}.get(value.lower(), value)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def term(self) -> Comparison:
        negated = self.accept("!")
        closing = self.accept("(")
        if negated and not closing:
            raise self._error("( after !")
        left = self._operand()
        sign = self._match(_OPERATOR)
        if sign is None:
            raise self._error("a comparison")
        right = self._operand()
        if closing and not self.accept(")"):
            raise self._error(")")
        return Comparison(left, sign[1], right, negated)

    def accept(self, word: str) -> bool:
        while self._text[self._position : self._position + 1].isspace():
            self._position += 1
        if not self._text.startswith(word, self._position):
            return False
        self._position += len(word)
        return True

    def finish(self) -> None:
        if self._text[self._position :].strip():
            raise self._error("&& or the end")

    def _operand(self) -> Operand:
        self.accept("")
        if cast := self._match(_CAST):
            inner = self._operand()
            if inner.cast or not self.accept(")"):
                raise self._error(")")
            return Operand(inner.constant, inner.name, cast[1])
        if named := self._match(_VALUE):
            return Operand(name=named[1])
        if quoted := self._match(_TEXT):
            return Operand(quoted[1])
        if number := self._match(_NUMBER):
            digits = number[0]
            return Operand(int(digits) if digits.lstrip("-").isdigit() else float(digits))
        for word, value in (("true", True), ("false", False)):
            if self.accept(word):
                return Operand(value)
        raise self._error("a value")

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self._text, self._position)
        if match:
            self._position = match.end()
        return match

    def _error(self, wanted: str) -> InvalidCondition:
        return InvalidCondition(
            f"expected {wanted} at: {self._text[self._position :][:60] or 'the end'}"
        )
