"""Locators: places of things, as lossless text.

A path is bytes and need not be UTF-8; a locator is text that any database and any JSON can
hold. So the bytes that are not UTF-8, and the percent sign itself, are percent-encoded;
everything else stays readable: `file://<machine-id>/data/über%FF.csv`.
"""

import re
from base64 import b64encode
from typing import NotRequired, TypedDict

from clew.documents.ids import Locator, Uid

_GPU_DEVICE = re.compile(
    r"/dev/(nvidia(\d+|ctl|-uvm|-uvm-tools|-modeset|-caps/nvidia-cap\d+)|dri/(card|renderD)\d+|kfd)"
)
_ENCODED = re.compile(rb"%([0-9A-F]{2})")


def escape_path(path: bytes) -> str:
    """A path as a locator has it."""
    try:
        return path.replace(b"%", b"%25").decode()
    except UnicodeDecodeError:
        text = path.replace(b"%", b"%25").decode(errors="surrogateescape")
        return "".join(f"%{ord(c) - 0xDC00:02X}" if "\udc80" <= c <= "\udcff" else c for c in text)


def unescape_path(text: str) -> bytes:
    """The path that a locator has."""
    if "%" not in text:
        return text.encode()
    return _ENCODED.sub(lambda m: bytes([int(m[1], 16)]), text.encode())


def file_locator(machine: str, path: bytes) -> Locator:
    """The locator of an absolute path on one machine."""
    return Locator(f"file://{machine}{escape_path(path)}")


def stream_locator(execution: Uid, name: str) -> Locator:
    """The locator of `stdin`, `stdout` or `stderr` of an execution."""
    return Locator(f"stream://{execution}/{name}")


def path_of(locator: str) -> bytes | None:
    """The path of a `file://` locator; None for any other kind."""
    if not locator.startswith("file://"):
        return None
    slash = locator.find("/", len("file://"))
    return unescape_path(locator[slash:]) if slash >= 0 else None


def is_device_path(path: bytes) -> bool:
    """Whether this is a device node, or another entry of `/dev` except shared memory."""
    return path.startswith(b"/dev/") and not path.startswith(b"/dev/shm/")


def is_gpu_device(path: str) -> bool:
    """Whether this is a device node of a GPU. A sandbox may get these, and no others."""
    return _GPU_DEVICE.fullmatch(path) is not None


def is_file_path(text: str) -> bool:
    """Whether this is the path of a locator as `file_locator` writes it."""
    return "%" not in text or (
        b"\0" not in (path := unescape_path(text)) and escape_path(path) == text
    )


class PathFields(TypedDict):
    """A path in a document."""

    path: str
    path_b64: NotRequired[str]
    """In Base64, if the path is not UTF-8."""


def path_json(path: bytes) -> PathFields:
    """`{"path": …}`, and `path_b64` beside it where the path is not UTF-8."""
    try:
        return {"path": path.decode()}
    except UnicodeDecodeError:
        return {"path": path.decode(errors="replace"), "path_b64": b64encode(path).decode()}


def decode_text(raw: bytes | str) -> str:
    """Bytes, or what Python made of them, as text that any JSON can hold."""
    if isinstance(raw, str):
        raw = raw.encode(errors="surrogateescape")
    return raw.decode(errors="replace")
