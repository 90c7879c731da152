"""Which values a repeat may be given for the secrets that its record does not hold.

A record names the secrets it needs. A record made elsewhere is untrusted, and could name any
variable: it gets only what the user gave by name. A record made here also gets what the caller's
environment has, because the same user recorded it with those variables set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from clew.errors import SecretsNeeded

if TYPE_CHECKING:
    from clew.prov.questions.executions import Found


@dataclass(frozen=True)
class SecretValues:
    """The values that a caller offers to repeats."""

    environ: Mapping[str, str] = field(default_factory=dict)
    """The caller's environment: for records made here."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Given by name, for any record."""

    def with_given(self, given: Mapping[str, str]) -> SecretValues:
        return replace(self, given={**self.given, **given})

    def select(self, execution: Found, names: Iterable[str]) -> dict[str, str]:
        """The values of these secrets for a repeat of `execution`; refuses if one is missing."""
        offered = self.given if execution.made_elsewhere else {**self.environ, **self.given}
        wanted = sorted(names)
        missing = [name for name in wanted if name not in offered]
        if missing:
            listed = ", ".join(missing)
            options = " ".join(f"--secret {name}" for name in missing)
            where = "was made elsewhere and asks for" if execution.made_elsewhere else "needs"
            raise SecretsNeeded(
                f"{execution.id} {where} secrets that are not recorded: {listed}",
                hint=f"to give them: clew repeat {execution.id} {options}",
                names=missing,
            )
        return {name: offered[name] for name in wanted}
