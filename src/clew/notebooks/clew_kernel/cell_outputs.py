"""Keep the messages with which a cell shows its outputs, and send them again."""

import base64
import threading
from typing import Any

_OUTPUTS = frozenset(
    {
        *("stream", "display_data", "execute_result", "update_display_data", "clear_output"),
        "error",
    }
)


class CellOutputs:
    """Listens to all messages of a kernel's session. One cell runs at a time."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._send = kernel.session.send
        self._lock = threading.Lock()
        self._kept: list[dict[str, Any]] | None = None
        self.widget = False
        """The cell talked to a widget of the front end."""
        kernel.session.send = self._listen

    def begin(self) -> None:
        self.widget = False
        self._kept = []

    def end(self) -> list[dict[str, Any]]:
        """The messages since `begin`."""
        with self._lock:
            kept, self._kept = self._kept or [], None
        return kept

    def show(self, messages: list[dict[str, Any]], execution_count: int) -> None:
        """Send recorded messages as outputs of the cell that is running now."""
        for message in messages:
            content = dict(message["content"])
            if "execution_count" in content:
                content["execution_count"] = execution_count
            self._send(
                self._kernel.iopub_socket,
                message["type"],
                content,
                parent=self._kernel.get_parent(),
                ident=self._kernel._topic(message["type"]),
                buffers=[base64.b64decode(buffer) for buffer in message["buffers"]],
            )

    def _listen(
        self, stream: Any, msg_or_type: Any, content: Any = None, *more: Any, **options: Any
    ) -> Any:
        kind = msg_or_type
        if isinstance(msg_or_type, dict):
            kind, content = msg_or_type["header"]["msg_type"], msg_or_type.get("content")
        if self._kept is not None and str(kind).startswith("comm_"):
            self.widget = True
        if self._kept is not None and kind in _OUTPUTS:
            message = {
                "type": kind,
                "content": content,
                "buffers": [
                    base64.b64encode(bytes(buffer)).decode()
                    for buffer in options.get("buffers") or ()
                ],
            }
            with self._lock:
                if self._kept is not None:
                    self._kept.append(message)
        return self._send(stream, msg_or_type, content, *more, **options)
