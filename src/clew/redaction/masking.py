"""Masking of known values in text, and in a stream that arrives in pieces."""

import re
from collections.abc import Iterable, Sequence

MASK = "***"
"""Stands for every masked value. Its characters are allowed anywhere in a URL."""

_MASK = MASK.encode()
_HEAD = 8
"""How many first bytes of a value are searched for at the end of a piece."""


def mask(values: Sequence[bytes], text: bytes) -> bytes:
    """Mask every value in the text; of two with the same beginning, the longer one.

    `values` are sorted, longest first. Searching for each alone is several times faster than one
    expression for all of them, and most texts contain none.
    """
    present = _search(values, text)
    return present.sub(_MASK, text) if present else text


def _search(values: Iterable[bytes], text: bytes) -> re.Pattern[bytes] | None:
    """An expression for the values that are in the text; None if there are none."""
    found = [value for value in values if value in text]
    return re.compile(b"|".join(map(re.escape, found))) if found else None


class Stream:
    """Masks a stream piece by piece, with the result that `mask` would give for the whole.

    It holds back bytes that may begin a value until the next piece decides.
    """

    def __init__(self, values: Sequence[bytes]) -> None:
        self._values = values
        self._longest = len(values[0]) if values else 0
        self._beginnings = {
            value[:size] for value in values for size in range(1, min(_HEAD, len(value)))
        }
        self._held = b""

    def feed(self, piece: bytes) -> bytes:
        if not self._values:
            return piece
        return self._mask(self._held + piece, last=False)

    def finish(self) -> bytes:
        """The bytes held back, at the end of the stream."""
        return self._mask(self._held, last=True)

    def _mask(self, text: bytes, *, last: bool) -> bytes:
        open_starts = [] if last else self._open_starts(text)
        present = _search(self._values, text)
        done: list[bytes] = []
        position = 0
        while True:
            open_end = next((at for at in open_starts if at >= position), len(text))
            match = present.search(text, position) if present else None
            if match is None or match.start() >= open_end:
                break
            done += (text[position : match.start()], _MASK)
            position = match.end()
        done.append(text[position:open_end])
        self._held = text[open_end:]
        return b"".join(done)

    def _open_starts(self, text: bytes) -> list[int]:
        """The positions, in order, of values that more text could complete."""
        tail = max(0, len(text) - self._longest + 1)
        starts = {
            len(text) - size
            for size in range(1, min(_HEAD, len(text) + 1))
            if text[-size:] in self._beginnings
        }
        for value in self._values:
            at = text.find(value[:_HEAD], tail)
            while at >= 0:
                if len(text) - at < len(value) and value.startswith(text[at:]):
                    starts.add(at)
                at = text.find(value[:_HEAD], at + 1)
        return sorted(starts)
