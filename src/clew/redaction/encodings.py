"""The encodings in which a secret value is looked for in text and streams."""

import base64
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

_URLSAFE = bytes.maketrans(b"+/", b"-_")


def encodings(value: str) -> Iterator[bytes]:
    """The value itself, and in base64, hexadecimal, percent-encoding and JSON."""
    import json  # only where there are secrets

    raw = value.encode(errors="surrogateescape")
    yield raw
    yield raw.replace(b"\n", b"\r\n")  # as a terminal prints it
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted.encode()
        yield _lower_percent(quoted).encode()
    for ascii_only in (True, False):
        yield json.dumps(value, ensure_ascii=ascii_only)[1:-1].encode(errors="surrogateescape")
    yield from _base64(raw)


def _base64(raw: bytes) -> Iterator[bytes]:
    """The characters that depend on the value alone, wherever it stands in what was encoded.

    Three bytes become four characters, so there are three alignments. A character that also holds
    bits of the byte before or after the value is left out: it differs with its surroundings.
    """
    for before in range(3):
        first, end = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        standard = base64.b64encode(bytes(before) + raw)[first:end]
        yield standard
        yield standard.translate(_URLSAFE)


def _lower_percent(quoted: str) -> str:
    """`%2F` as `%2f`."""
    head, *rest = quoted.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])
