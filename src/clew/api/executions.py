"""Executions as the Python interface returns them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import structs

from clew.documents.executions import execution_list
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.documents.executions.detail import ExecutionDetail, File, Process

Ask = Callable[[str], "ExecutionDetail"]
"""Returns all that is known of an execution, by uid."""


class Execution(execution_list.Execution, frozen=True, kw_only=True, dict=True):
    """One recorded command. Its processes and files are loaded on first use."""

    @classmethod
    def of(cls, document: execution_list.Execution, ask: Ask) -> Execution:
        execution = cls(**structs.asdict(document))
        execution.__dict__["ask"] = ask
        return execution

    @cached_property
    def details(self) -> ExecutionDetail:
        """The document of `clew show --detail --json`."""
        ask: Ask = self.__dict__["ask"]
        return ask(self.uid)

    @property
    def processes(self) -> tuple[Process, ...]:
        return self.details.tree

    @property
    def files(self) -> tuple[File, ...]:
        """Every file that it accessed, in the order of their paths."""
        return self.details.files or ()

    @property
    def inputs(self) -> tuple[File, ...]:
        return tuple(file for file in self.files if file.role == "input")

    @property
    def outputs(self) -> tuple[File, ...]:
        return tuple(file for file in self.files if file.role == "output")


@dataclass(frozen=True, kw_only=True)
class ExecutionList:
    """The result of `Project.select`."""

    executions: tuple[Execution, ...]
    """Newest first."""
    more: int
    """How many more match than `limit` allowed."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of `Project.run`."""

    execution: Execution
    status: int
    """The exit status of the command, as a shell would report it."""
    joined: str | None
    """The id of the outer execution, if this ran inside one and became part of it."""
    warning: ClewError | None
    """Why the record is incomplete although the command ran to its end."""
    server: str | None = None
    """The server it is sent to, if any."""
    sent: str | None = None
    """The id it has there."""
    waiting: str | None = None
    """Why it is not there yet; it goes with the next."""
