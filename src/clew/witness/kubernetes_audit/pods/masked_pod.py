"""The spec of a Pod without its secrets, and what its containers are started with.

Values that the user wrote into a spec may be passwords, or addresses that hold one. They are masked
by the same rules as those of a command on a machine: by the names of variables, options and
headers, and by their form; and then wherever else the same value stands in the spec. Texts are also
cut to what the graph takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.prov.facets import MAX_TEXT
from clew.redaction import MASK, Redactor, mask_text
from clew.redaction.names import HEADERS, is_secret_option, is_secret_variable

CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_FREE_MAPS = frozenset({"volumeAttributes", "options"})
"""Fields that are maps of names that a driver defines, which may be those of secrets."""
_CUT = "… (cut)"


class MaskedPod:
    """`spec`: the masked spec; the rest by the names of containers."""

    def __init__(self, spec: dict[str, Any], patterns: tuple[str, ...]) -> None:
        self._patterns = patterns
        self._redactor = Redactor({}, patterns)
        self.values = 0
        """Values in the spec, at all levels."""
        self.commands: dict[str, tuple[str, ...]] = {}
        self.environments: dict[str, dict[str, str | None]] = {}
        containers = list(_containers(spec))
        for container in containers:  # a secret of one may stand in the words of another
            self._redactor.learn(_variables(container))
            self._redactor.learn_command(_words(container))
        masked: dict[str, Any] = self._mask(spec)
        for container, found in zip(containers, _containers(masked), strict=True):
            self._mask_container(container, found)
        self.spec = masked

    def _mask_container(self, container: dict[str, Any], masked: dict[str, Any]) -> None:
        words = _words(container)
        if words:
            known = list(map(self._text, self._redactor.arguments(words).words))
            for field in ("args", "command"):
                if count := len(_texts(container.get(field))):
                    masked[field] = known[-count:]
                    known = known[:-count]
        name = str(container.get("name", ""))
        self.commands[name] = tuple(_words(masked))
        self.environments[name] = {n: v for n, v in _variables(masked).items() if "=" not in n}

    def _mask(self, value: Any, field: str = "") -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list | dict):
            self.values += len(value)
        if isinstance(value, list):
            return [self._mask(one) for one in value]
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("value"), str) and isinstance(value.get("name"), str):
            return {**value, "value": self._variable(value["name"], value["value"])}
        found = {self._text(name): self._mask(one, name) for name, one in value.items()}
        if field in _FREE_MAPS:
            found |= {name: MASK for name in found if self._is_secret(name)}
        return found

    def _variable(self, name: str, value: str) -> str:
        if value and (self._is_secret(name) or name.lower() in HEADERS):
            return MASK
        return self._text(value)

    def _is_secret(self, name: str) -> bool:
        return is_secret_variable(name, self._patterns) or is_secret_option(name, self._patterns)

    def _text(self, text: str) -> str:
        masked = mask_text(self._redactor.text(text)).replace("\0", "\N{REPLACEMENT CHARACTER}")
        return masked if len(masked) <= MAX_TEXT else masked[: MAX_TEXT - len(_CUT)] + _CUT


def _containers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for field in CONTAINERS:
        yield from _dicts(spec.get(field))


def _words(container: dict[str, Any]) -> list[str]:
    """The words that a container is started with; those of the image are not in the spec."""
    return [*_texts(container.get("command")), *_texts(container.get("args"))]


def _variables(container: dict[str, Any]) -> dict[str, str]:
    return {
        variable["name"]: variable["value"]
        for variable in _dicts(container.get("env"))
        if isinstance(variable.get("value"), str) and isinstance(variable.get("name"), str)
    }


def _dicts(value: object) -> list[dict[str, Any]]:
    """The members of a list that are objects: a spec is of any shape."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
