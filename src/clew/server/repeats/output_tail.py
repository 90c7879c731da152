"""The end of what a repeat printed, as text that any database stores."""

MAX_BYTES = 64 << 10
_CUT = "… the beginning is not kept …\n"


class OutputTail:
    """Collects output, and keeps its last 64 KiB."""

    def __init__(self) -> None:
        self._data = b""
        self._cut = False

    def add(self, data: bytes) -> None:
        joined = self._data + data
        self._cut = self._cut or len(joined) > MAX_BYTES
        self._data = joined[-MAX_BYTES:]

    def add_message(self, text: str) -> None:
        """Add a message of Clew, on a line of its own."""
        start = b"\n" if self._data and not self._data.endswith(b"\n") else b""
        self.add(start + f"clew: {text}\n".encode(errors="replace"))

    def text(self) -> str:
        data = self._data
        if self._cut:  # begin with a whole line, which is also a whole character
            data = data.partition(b"\n")[2] or data
        text = data.decode(errors="replace").replace("\0", "\ufffd")
        return _CUT + text if self._cut else text
