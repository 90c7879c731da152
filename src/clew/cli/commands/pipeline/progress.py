"""The progress of a run on stderr: a line per change; on a terminal, the running tasks below."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING

from clew.cli.output import escape, format_duration, print_message

if TYPE_CHECKING:
    from clew.pipelines.runner.run_types import Change

_REDRAW_SECONDS = 0.1
_MAX_TASKS = 8
_DEFAULT_WIDTH = 80
"""Columns, where the terminal reports none."""


class Progress:
    """Prints on stderr; `changed` and `say` may be called from any thread."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._lock = threading.Lock()
        self._running: dict[str, float] = {}
        self._counts: dict[str, int] = {}
        self._drawn = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._redraw_loop, daemon=True)

    def __enter__(self) -> Progress:
        if self._live:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._live:
            self._thread.join()
            with self._lock:
                self._wipe()

    def say(self, text: str) -> None:
        with self._lock:
            self._wipe()
            print_message(text)

    def changed(self, change: Change) -> None:
        state = "reused" if change.reused else change.node.state
        with self._lock:
            if state == "running":
                self._running.setdefault(change.node.path, time.monotonic())
                if self._live:
                    return
            else:
                self._running.pop(change.node.path, None)
                self._counts[state] = self._counts.get(state, 0) + 1
            self._wipe()
            print_message(_format_change(change, state))

    # -- on a terminal

    def _redraw_loop(self) -> None:
        while not self._over.wait(_REDRAW_SECONDS):
            with self._lock:
                self._wipe()
                self._draw()

    def _draw(self) -> None:
        now = time.monotonic()
        lines = [
            f"  running    {escape(path)}  {format_duration(now - since)}"
            for path, since in list(self._running.items())[:_MAX_TASKS]
        ]
        counts = {"running": len(self._running), **self._counts}
        lines.append("  " + ", ".join(f"{count} {state}" for state, count in counts.items()))
        width = (os.get_terminal_size(sys.stderr.fileno()).columns or _DEFAULT_WIDTH) - 1
        sys.stderr.write("".join(f"{line[:width]}\n" for line in lines))
        sys.stderr.flush()
        self._drawn = len(lines)

    def _wipe(self) -> None:
        if self._drawn:
            sys.stderr.write(f"\x1b[{self._drawn}A\x1b[J")
            sys.stderr.flush()
            self._drawn = 0


def _format_change(change: Change, state: str) -> str:
    node = change.node
    took = f" in {format_duration(change.seconds)}" if change.seconds is not None else ""
    execution = f" ({change.execution})" if change.execution else ""
    reason = node.error or change.why
    why = f": {escape(reason)}" if reason and state != "running" else ""
    return f"  {state:<9}  {escape(node.path)}{took}{execution}{why}"
