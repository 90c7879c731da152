"""Run the cells of a notebook file in a new kernel, each recorded, and compare the outputs.

nbclient runs the cells, so errors, tags and widgets are treated as Jupyter treats them. The
kernel itself decides which cells are reused; its replies say so.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from clew.errors import ClewError, NotFound, UsageError

if TYPE_CHECKING:
    import nbformat

_MISSING = "repeating a notebook needs nbclient"
_HINT = "pip install 'clew[notebooks]'"
_NAME = re.compile(r"[^\W\d]\w*")
_PARAMETERS = "parameters"
"""The tag with which papermill marks the cell of default parameters; ours follows it."""
_SHOWN = ("output_type", "name", "text", "data", "ename", "evalue")
_SHUTDOWN_SECONDS = 120.0
"""How long a kernel may take to end: a killed one leaves its record to be completed later."""


class RepeatedCell(Struct, frozen=True):
    """What became of one cell. `index` counts all cells of the file, from 0."""

    index: int
    state: str
    """`ran`, `reused` or `failed`."""
    why: str
    seconds: float


class RepeatedNotebook(Struct, frozen=True):
    """The result of a repeat. The verdict is `identical` or `different` from the outputs that the
    file had, or `failed`."""

    cells: list[RepeatedCell]
    verdict: str
    output: str | None
    """The file with the new outputs."""
    error: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "cells": [structs.asdict(cell) for cell in self.cells],
            "verdict": self.verdict,
            "output": self.output,
            "error": self.error,
        }


def repeat_notebook(
    path: Path,
    *,
    python: str,
    incremental: bool,
    parameters: Mapping[str, Any],
    output: Path | None,
) -> RepeatedNotebook:
    """Run the notebook in its directory."""
    notebook = _read(path)
    then = [_outputs(cell) for cell in notebook.cells]
    added = _add_parameters(notebook, parameters)
    if added is not None:
        then.insert(added, None)
    run = _NotebookRun(notebook, path.resolve().parent, python, incremental=incremental)
    error = run.execute()
    if output is not None:
        _write(notebook, output)
    now = [_outputs(cell) for cell in notebook.cells]
    same = all(a == b for a, b in zip(then, now, strict=True) if a is not None)
    verdict = "failed" if error else "identical" if same else "different"
    return RepeatedNotebook(run.cells, verdict, str(output) if output else None, error)


class _NotebookRun:
    """One run of nbclient, and what the kernel said of each cell."""

    def __init__(
        self, notebook: nbformat.NotebookNode, directory: Path, python: str, *, incremental: bool
    ) -> None:
        try:
            from jupyter_client.kernelspec import KernelSpec
            from jupyter_client.manager import AsyncKernelManager
            from nbclient import NotebookClient
        except ImportError as error:
            raise ClewError(_MISSING, hint=_HINT) from error
        self.cells: list[RepeatedCell] = []
        more = ["--incremental"] if incremental else []
        spec = KernelSpec(
            argv=[
                *(sys.executable, "-m", "clew", "kernel", "start", "--python", python, *more),
                *("--", "-f", "{connection_file}"),
            ],
            display_name="Clew",
            language="python",
        )

        class Manager(AsyncKernelManager):
            """Starts our kernel, whatever kernel the notebook names, and talks to it locally."""

            @property
            def kernel_spec(self) -> KernelSpec:
                return spec

            def _transport_default(self) -> str:
                return "ipc"

            def _shutdown_wait_time_default(self) -> float:
                return _SHUTDOWN_SECONDS

        self._client = NotebookClient(
            notebook,
            kernel_manager_class=Manager,
            timeout=None,
            coalesce_streams=True,
            resources={"metadata": {"path": str(directory)}},
            on_cell_executed=self._note,
        )
        self._directory = directory

    def execute(self) -> str | None:
        """Run all cells; the answer is the error at which it stopped."""
        from nbclient.exceptions import CellExecutionError, DeadKernelError

        try:
            self._client.execute(cwd=str(self._directory))
        except CellExecutionError as error:
            return f"{error.ename}: {error.evalue}"
        except (DeadKernelError, RuntimeError) as error:
            raise ClewError(
                f"the kernel died: {error}", hint="clew list shows its record"
            ) from error
        return None

    def _note(self, *, cell: Any, cell_index: int, execute_reply: Any) -> None:
        report = execute_reply["metadata"].get("clew")
        if report is not None:
            self.cells.append(
                RepeatedCell(
                    cell_index, report["state"], report["why"], round(report["seconds"], 3)
                )
            )


def parse_parameters(words: tuple[str, ...]) -> dict[str, Any]:
    """NAME=VALUE, where a value that is JSON is taken as such, and any other as text."""
    parameters: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise UsageError(f"{word} is not NAME=VALUE", hint="--set rate=0.1 --set model=small")
        try:
            parameters[name] = json.loads(value)
        except ValueError:
            parameters[name] = value
    return parameters


def _add_parameters(notebook: nbformat.NotebookNode, values: Mapping[str, Any]) -> int | None:
    """Insert a cell that sets them, after the one tagged `parameters`; its index."""
    if not values:
        return None
    from nbformat.v4 import new_code_cell

    tagged = [
        index
        for index, cell in enumerate(notebook.cells)
        if _PARAMETERS in cell.metadata.get("tags", ())
    ]
    where = tagged[0] + 1 if tagged else 0
    source = "\n".join(f"{name} = {value!r}" for name, value in values.items())
    cell = new_code_cell(source, metadata={"tags": ["injected-parameters"]})  # type: ignore[no-untyped-call]
    notebook.cells.insert(where, cell)
    return where


def _read(path: Path) -> nbformat.NotebookNode:
    try:
        import nbformat
    except ImportError as error:
        raise ClewError(_MISSING, hint=_HINT) from error
    try:
        return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call,no-any-return]
    except FileNotFoundError as error:
        raise NotFound(f"{path} does not exist", hint="name a notebook: report.ipynb") from error
    except Exception as error:  # nbformat raises many kinds for a file that is none
        raise UsageError(f"{path} is not a notebook: {str(error)[:200]}") from error


def _write(notebook: nbformat.NotebookNode, path: Path) -> None:
    import nbformat

    try:
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise ClewError(f"{path} cannot be written: {error.strerror}") from error


def _outputs(cell: Any) -> Any:
    """What a cell shows, without the numbers that count executions; None if it is no code."""
    if cell.cell_type != "code":
        return None
    return [{name: one[name] for name in _SHOWN if name in one} for one in cell.outputs]
