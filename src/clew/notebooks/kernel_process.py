"""Run a kernel under the tracer, record each cell, and answer whether it can be reused.

Jupyter starts this process in place of the kernel and sends its signals to both: this one ignores
what is meant for the kernel, and ends when the kernel has ended. A fault of the record never
disturbs the kernel: the cells after it run as without Clew.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from blake3 import blake3

from clew import db, log
from clew.documents.ids import Uid
from clew.notebooks import messages
from clew.notebooks.cell_events import build_cell_events
from clew.notebooks.cell_memo import CellMemo, FoundCell
from clew.notebooks.messages import Begin, End, Message, Ready, Run
from clew.project_directory import ProjectDirectory
from clew.prov.graph import Graph
from clew.run import record_errors
from clew.run.execution_events import ExecutionStart
from clew.run.launch.execution_host import LocalHost
from clew.run.session.step_session import StepSession
from clew.settings import Settings

_MAIN = Path(__file__).parent / "clew_kernel" / "main.py"
_OF_ONE_KERNEL = frozenset(
    {
        *("JPY_PARENT_PID", "JPY_SESSION_NAME", "JPY_INTERRUPT_EVENT", "_", "PWD", "OLDPWD"),
        *("SHLVL", "TERM", "COLUMNS", "LINES", "CLEW_KERNEL_LIBRARIES"),
    }
)
"""Variables that say how one kernel was started."""
_PARENT_SECONDS = 1.0
_KEY_CONTEXT = "clew notebooks: fingerprints of values"
_FORWARDED = (signal.SIGINT, signal.SIGQUIT)


class _Host(LocalHost):
    """This machine, with what the kernel needs among its variables."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        spec = importlib.util.find_spec("cloudpickle")
        library = Path(spec.origin).parent.parent if spec and spec.origin else None
        self.environ = {
            "PYTHONHASHSEED": "0",
            **self.environ,
            **({"CLEW_KERNEL_LIBRARIES": str(library)} if library else {}),
        }


def run_kernel(
    directory: ProjectDirectory,
    settings: Settings,
    arguments: Sequence[str],
    *,
    python: str,
    incremental: bool,
) -> int:
    """Run a kernel to its end; return its exit status. `arguments` are those of ipykernel."""
    for number in _FORWARDED:
        signal.signal(number, _leave_to_kernel)  # not SIG_IGN, which the kernel would inherit
    command = (python, str(_MAIN), *arguments)
    return _KernelProcess(directory, settings, command, incremental=incremental).run()


class _KernelProcess:
    def __init__(
        self,
        directory: ProjectDirectory,
        settings: Settings,
        command: Sequence[str],
        *,
        incremental: bool,
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._incremental = incremental
        self._memo = CellMemo(directory, settings)
        self._begun: dict[str, tuple[Begin, str]] = {}
        self._host = _Host(settings)
        self._session = StepSession(directory, settings, command, self._host)
        self._environment = ""
        self._cells_ran = False

    def run(self) -> int:
        start = self._start = self._session.start()
        threading.Thread(target=self._watch_parent, daemon=True).start()
        self._environment = _hash_environment(start)
        with self._reported(), self._graph() as graph:
            graph.begin(self._session.uid)
            graph.fold([start.event])
        while (message := messages.receive(self._session.socket)) is not None:
            self._handle(message)
        status, events = self._session.finish()
        with self._reported(), self._graph() as graph:
            graph.fold(events)
        self._session.discard()
        return status if status >= 0 else 128 - status

    def _watch_parent(self) -> None:
        """End the kernel when Jupyter has ended without a word."""
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(_PARENT_SECONDS)
        self._session.stop()

    def _handle(self, message: Message) -> None:
        link = self._session.socket
        if isinstance(message, Ready):
            self._environment += message.python
            messages.send(link, {"folder": str(self._session.spool), "key": self._key()})
        elif isinstance(message, Begin):
            messages.send(link, self._decide(message))
        elif isinstance(message, Run):
            messages.send(link, {})
        else:
            with self._reported():
                self._record(message)

    def _key(self) -> str:
        """The key of the fingerprints of values: one of the project, which does not reveal its own.
        Without that, nothing that this kernel records can be compared later."""
        own = self._directory.key
        return blake3(own or os.urandom(32), derive_key_context=_KEY_CONTEXT).hexdigest()

    def _decide(self, begin: Begin) -> dict[str, Any]:
        key = _hash([begin.key, self._environment])
        self._begun = {begin.cell: (begin, key)}
        if not self._incremental:
            return {"reuse": False, "why": "every cell was to run"}
        why = "the record cannot be read"
        with self._reported():
            found = self._memo.find(begin, key)
            if isinstance(found, FoundCell):
                places = self._memo.restore(
                    found, self._session.spool, begin.cell, cells_ran=self._cells_ran
                )
                if not isinstance(places, str):
                    held = f"nothing that it depends on changed since {found.shown}"
                    return {"reuse": True, "why": held, "document": found.document, **places}
                why = places
            else:
                why = found
        return {"reuse": False, "why": why}

    def _record(self, end: End) -> None:
        self._cells_ran = True
        begin, key = self._begun[end.cell]
        session = self._session
        converted, step = session.convert_step(end.cell, Uid(end.cell))
        events = build_cell_events(
            self._start,
            begin,
            end,
            key,
            converted,
            step,
            session.store,
            session.spool,
            session.redactor,
        )
        session.store.flush()
        with self._graph() as graph:
            graph.fold(events)

    @contextlib.contextmanager
    def _graph(self) -> Any:
        with db.connect(self._directory.graph, address=self._settings.graph) as connection:
            yield Graph(connection, self._directory.uid, signers=self._settings.config)

    @contextlib.contextmanager
    def _reported(self) -> Any:
        """Write a fault of the record to the log and to stderr, and go on."""
        try:
            yield
        except Exception as error:
            fault = record_errors.as_clew_error(error)
            log.write_error(self._directory, fault)
            sys.stderr.write(f"clew: {fault.message}\n")


def _leave_to_kernel(_number: int, _frame: object) -> None:
    """The kernel gets the same signal."""


def _hash_environment(start: ExecutionStart) -> str:
    """Of the variables as they are recorded, but for those that name one kernel."""
    variables = {n: v for n, v in start.variables.items() if n not in _OF_ONE_KERNEL}
    facets = {name: start.event.facets.get(name) for name in ("sealed", "machine")}
    return _hash([variables, facets, start.event.cwd])


def _hash(value: object) -> str:
    return blake3(msgspec.json.encode(value, order="deterministic")).hexdigest(length=16)
