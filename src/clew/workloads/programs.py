"""The interface of the programs that a back end needs and can install: JupyterLab, TensorBoard."""

from collections.abc import Sequence
from typing import Protocol

from clew.documents.workloads.workload import Program, ProgramInstallation


class Programs(Protocol):
    def list(self) -> Sequence[Program]: ...

    def get(self, name: str) -> ProgramInstallation:
        """The state of an installation, with its output. NotFound: there is no such program."""

    def install(self, name: str) -> ProgramInstallation:
        """Begin to install a program, unless it is installed or being installed."""
