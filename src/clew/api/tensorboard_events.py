"""Read the scalars of a TensorBoard event file.

The file is a sequence of records (length, checksum, data, checksum), each an `Event` in protocol
buffers. Only scalars are decoded, with a few lines for the wire format, because the TensorBoard
package is large. The file is untrusted input: reading stops at the first malformed record, as it
does at the end of a file that is still written.
"""

import struct
from collections.abc import Iterator

Series = list[tuple[int, float]]
"""A scalar over time: step and value."""

_STEP, _SUMMARY, _VALUE = 2, 5, 1  # fields of Event and Summary
_TAG, _SIMPLE_VALUE, _TENSOR = 1, 2, 8  # fields of Summary.Value
_DTYPE, _TENSOR_CONTENT, _FLOATS, _DOUBLES = 1, 4, 5, 6  # fields of TensorProto
_STEPS = 1 << 63
"""As many as `int64` has: JSON cannot express more."""
_FORMATS = {1: "<f", 2: "<d"}  # DT_FLOAT, DT_DOUBLE


def read_scalars(data: bytes) -> dict[str, Series]:
    """All scalars of an event file by tag, in the order they were written."""
    scalars: dict[str, Series] = {}
    try:
        for record in _records(data):
            event = dict(_fields(record))
            given = event.get(_STEP, 0)
            step = given if isinstance(given, int) and given < _STEPS else 0
            for number, value in _fields(_bytes(event.get(_SUMMARY))):
                if number == _VALUE:
                    _add_scalar(scalars, step, _bytes(value))
    except (ValueError, LookupError, struct.error):
        pass
    return scalars


def _records(data: bytes) -> Iterator[bytes]:
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        start = at + 12
        if start + length + 4 > len(data):
            return
        yield data[start : start + length]
        at = start + length + 4


def _add_scalar(scalars: dict[str, Series], step: int, value: bytes) -> None:
    fields = dict(_fields(value))
    number: float | None = None
    if _SIMPLE_VALUE in fields:
        (number,) = struct.unpack("<f", _bytes(fields[_SIMPLE_VALUE]))
    elif _TENSOR in fields:
        tensor = dict(_fields(_bytes(fields[_TENSOR])))
        layout = _FORMATS.get(tensor.get(_DTYPE))  # type: ignore[arg-type]
        content = tensor.get(_TENSOR_CONTENT) or tensor.get(_FLOATS) or tensor.get(_DOUBLES)
        if layout and content and len(_bytes(content)) == struct.calcsize(layout):
            (number,) = struct.unpack(layout, _bytes(content))
    if number is not None:
        scalars.setdefault(_bytes(fields[_TAG]).decode(), []).append((step, number))


def _bytes(value: int | bytes | None) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes are expected")
    return value or b""


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of one message: number, and a varint or raw bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        size, at = (8, at) if kind == 1 else (4, at) if kind == 5 else _varint(data, at)
        if kind not in (1, 2, 5) or at + size > len(data):
            raise ValueError("malformed message")
        yield number, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("malformed number")
