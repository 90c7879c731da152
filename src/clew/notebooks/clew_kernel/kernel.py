"""ipykernel whose cells are recorded, and reused where the recorder says so."""

import json
import os
import sys
import time
import traceback
from typing import Any

from clew_kernel.cell_outputs import CellOutputs
from clew_kernel.cell_tracker import Cell, CellTracker
from clew_kernel.code_names import hash_text
from clew_kernel.fingerprints import fingerprints
from clew_kernel.session_link import SessionLink, mark_step
from ipykernel.compiler import XCachingCompiler
from ipykernel.ipkernel import IPythonKernel
from ipykernel.zmqshell import ZMQInteractiveShell


class _Compiler(XCachingCompiler):
    """Gives the same cell the same file name in every kernel: functions contain it."""

    def get_code_name(self, raw_code: str, code: str, number: int) -> str:
        if "IPYKERNEL_CELL_NAME" in os.environ or "debugpy" in sys.modules:
            return str(super().get_code_name(raw_code, code, number))
        return f"/ipykernel/{hash_text(raw_code)[:16]}.py"


class RecordedKernel(IPythonKernel):
    """Asks the recorder before each cell, and reports after it."""

    compiler_class = _Compiler

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.shell: ZMQInteractiveShell
        self._link: SessionLink | None = link
        self._outputs = CellOutputs(self)
        self._tracker = CellTracker(self.shell.user_ns)
        self._report: dict[str, Any] = {}
        self._folder = ""

    def start(self) -> None:
        super().start()
        if self._link is not None:
            answer = self._link.ask({"kind": "ready", "python": sys.version})
            self._folder = answer["folder"]
            fingerprints.set_key(answer["key"])

    def finish_metadata(self, parent: Any, metadata: Any, reply_content: Any) -> Any:
        """The reply says whether the cell ran, and why."""
        report, self._report = self._report, {}
        if report:
            metadata["clew"] = report
        return super().finish_metadata(parent, metadata, reply_content)

    async def do_execute(self, code: str, silent: bool, *more: Any, **options: Any) -> Any:
        if silent or self._link is None or not self._link.is_ours or not code.strip():
            return await super().do_execute(code, silent, *more, **options)
        began = time.monotonic()
        cell = self._begin(code)
        why, answer = "it cannot be tracked", {}
        if cell is not None:
            answer = self._link.ask({**cell.question(), "code": code})
            why = answer["why"]
            if answer["reuse"]:
                failed = self._tracker.restore(answer["variables"], answer["document"])
                if failed is None:
                    return self._reuse(code, answer, options, began)
                why = failed
                self._link.ask({"kind": "run", "cell": cell.uid, "why": why})
        reply = await self._run(cell, code, silent, more, options)
        state = "ran" if reply["status"] == "ok" else "failed"
        self._report = {"state": state, "why": why, "seconds": time.monotonic() - began}
        return reply

    def _begin(self, code: str) -> Cell | None:
        try:
            return self._tracker.begin(self.shell.transform_cell(code))
        except Exception:
            self._warn()
            return None

    async def _run(
        self, cell: Cell | None, code: str, silent: bool, more: Any, options: dict[str, Any]
    ) -> dict[str, Any]:
        if cell is None:
            plain: dict[str, Any] = await super().do_execute(code, silent, *more, **options)
            return plain
        self._outputs.begin()
        began = time.time()
        mark_step(f"begin-{cell.uid}")
        reply: dict[str, Any] = {"status": "error"}
        cell.hide_assigned()
        try:
            reply = await super().do_execute(code, silent, *more, **options)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            mark_step(f"end-{cell.uid}")
            cell.show_assigned()
            seconds = time.time() - began
            self._end(cell, reply, self._outputs.end(), seconds)
        return reply

    def _end(
        self, cell: Cell, reply: dict[str, Any], messages: list[dict[str, Any]], seconds: float
    ) -> None:
        assert self._link is not None
        document: dict[str, Any] = {
            "needs": {},
            "deleted": [],
            "process": {},
            "imports": [],
            "writes": {},
            "unsaved": "it failed",
        }
        if reply["status"] != "ok":
            cell.fail()
        else:
            try:
                document = cell.end(self._folder)
            except Exception as error:
                self._warn()
                document["unsaved"] = f"its variables cannot be compared ({error})"
        if self._outputs.widget and document["unsaved"] is None:
            document["unsaved"] = "it shows a widget"
        with open(os.path.join(self._folder, f"{cell.uid}.outputs"), "w") as file:
            json.dump(messages, file, default=str)
        self._link.send(
            {
                "kind": "end",
                "cell": cell.uid,
                "status": reply["status"],
                "seconds": seconds,
                "document": document,
            }
        )

    def _reuse(
        self, code: str, answer: dict[str, Any], options: dict[str, Any], began: float
    ) -> dict[str, Any]:
        """Show what the cell showed; its variables are back already."""
        shell = self.shell
        count = shell.execution_count
        shell.history_manager.store_inputs(count, code, shell.transform_cell(code))
        with open(answer["outputs"]) as file:
            self._outputs.show(json.load(file), count)
        shell.execution_count += 1
        seconds = time.monotonic() - began
        self._report = {"state": "reused", "why": answer["why"], "seconds": seconds}
        return {
            "status": "ok",
            "execution_count": count,
            "user_expressions": shell.user_expressions(options.get("user_expressions") or {}),
            "payload": [],
        }

    def _warn(self) -> None:
        self.log.warning("clew: the cell is not recorded\n%s", traceback.format_exc())


link: SessionLink | None = None
"""Set by `main` before the kernel is made."""
