"""Decide which values a repeat gets for the secrets that its record does not contain.

A record names the secrets it needs: variables and credential files. A record made elsewhere is
untrusted and could name any variable or file, so it gets only what the user gave by name. A record
made here also gets the caller's variables and the credential files of this machine, because the
same user recorded it with them. A server gives neither of its own.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from clew.errors import SecretsNeeded

if TYPE_CHECKING:
    from clew.prov.queries.executions import ExecutionRef


@dataclass(frozen=True)
class SecretValues:
    """The values that a caller offers to repeats."""

    environ: Mapping[str, str] = field(default_factory=dict)
    """The caller's environment: for records made here."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Given for any record: by the name of a variable, or the path of a file."""
    credentials: tuple[str, ...] = ()
    """Globs of the files that may be given: those that a record has no bytes of because they are
    credentials."""
    own_files: bool = False
    """Whether a record made here gets the credential files of this machine."""

    def with_given(self, given: Mapping[str, str]) -> SecretValues:
        return replace(self, given={**self.given, **given})

    def only_given(self, given: Mapping[str, str]) -> SecretValues:
        """These values, and nothing of the process and the machine that offers them."""
        return replace(self, environ={}, given=given, own_files=False)

    def select(
        self, execution: ExecutionRef, names: Iterable[str], paths: Iterable[str] = ()
    ) -> dict[str, str]:
        """Return the values of these variables and files for a repeat of `execution`, or raise
        SecretsNeeded. The bytes of files are decoded with `surrogateescape`."""
        offered = dict(self.given)
        files = sorted(paths)
        if not execution.made_elsewhere:
            offered = {**self.environ, **offered}
            for path in files if self.own_files else ():
                if path not in offered and (content := read_file(path)) is not None:
                    offered[path] = content
        wanted = [*sorted(names), *files]
        missing = [name for name in wanted if name not in offered]
        if missing:
            listed = ", ".join(missing)
            options = " ".join(map(_option, missing))
            where = "was made elsewhere and asks for" if execution.made_elsewhere else "needs"
            raise SecretsNeeded(
                f"{execution.id} {where} secrets that are not recorded: {listed}",
                hint=f"give them by name: {options}",
                names=missing,
            )
        return {name: offered[name] for name in wanted}


def is_path(name: str) -> bool:
    """Whether a secret of this name is a file, not a variable."""
    return name.startswith("/")


def read_file(path: str) -> str | None:
    """The bytes of a regular file, decoded with `surrogateescape`; None if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return file.read().decode(errors="surrogateescape")


def _option(name: str) -> str:
    return f"--secret {shlex.quote(name)}" + ("=FILE" if is_path(name) else "")
