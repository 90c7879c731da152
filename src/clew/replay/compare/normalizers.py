"""Remove from a file what changes with the time it was made, one function per format.

Two files whose difference does not matter normalize to the same bytes. A function raises
NotApplicable for another format, a broken file, or one that unpacks to too much: the files then
stay different. The result is only compared, never stored.
"""

import importlib
import io
import json
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from blake3 import blake3

MAX_UNPACKED = 64 << 20
"""Bytes that an archive may unpack to."""
_MAX_MEMBERS = 20_000
_MAX_EXTENDED_HEADERS = 8 << 20
"""Bytes of the extended headers of a tar archive."""


class NotApplicable(ValueError):
    """Not of this format, or not safe to unpack."""


def normalize_zip(content: bytes) -> bytes:
    """Zip archives (also wheels, jars, `.npz`, office files): the times of their members."""
    import zipfile

    if not content.startswith(b"PK\x03\x04") or content.count(b"PK\x01\x02") > _MAX_MEMBERS:
        raise NotApplicable
    members: list[Any] = []
    room = MAX_UNPACKED
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for info in archive.infolist():
                with archive.open(info) as member:
                    data = member.read(room + 1)
                room = _subtract(room, len(data))
                about = (info.filename, info.external_attr, info.compress_type, info.comment)
                members.append((about, blake3(data).hexdigest()))
            members.append(archive.comment)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, *_BROKEN) as error:
        raise NotApplicable from error
    return repr(members).encode()


def normalize_tar(content: bytes) -> bytes:
    """Tar archives, also compressed ones: the times of their members."""
    import tarfile

    from clew.bounded_tar import BoundedTar

    class Tar(BoundedTar):
        most_members = _MAX_MEMBERS
        most_extended = _MAX_EXTENDED_HEADERS

    members: list[Any] = []
    room = MAX_UNPACKED
    try:
        with Tar.open(fileobj=io.BytesIO(_decompressed(content)), mode="r:") as archive:
            for info in archive:
                room = _subtract(room, info.size + 512)
                more = {k: v for k, v in info.pax_headers.items() if not k.endswith("time")}
                file = archive.extractfile(info) if info.isreg() else None
                digest = blake3(file.read()).hexdigest() if file else ""
                about = (info.name, info.mode, info.uid, info.gid, info.uname, info.gname)
                members.append((about, info.type, info.linkname, sorted(more.items()), digest))
    except (tarfile.TarError, *_BROKEN) as error:
        raise NotApplicable from error
    if not members:  # any run of zeros reads as an empty archive
        raise NotApplicable
    return repr(members).encode()


_COMPRESSED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "lzma"}


def _decompressed(content: bytes) -> bytes:
    """Decompress an archive. `tarfile` itself would read a header of any length at once."""
    import lzma

    for magic, name in _COMPRESSED.items():
        if content.startswith(magic):
            try:
                with importlib.import_module(name).open(io.BytesIO(content)) as file:
                    data: bytes = file.read(MAX_UNPACKED + 1)
            except lzma.LZMAError as error:
                raise NotApplicable from error
            _subtract(MAX_UNPACKED, len(data))
            return data
    return content


def normalize_gzip(content: bytes) -> bytes:
    """Gzip files: the time in the header."""
    if not content.startswith(b"\x1f\x8b\x08") or len(content) < 18:
        raise NotApplicable
    return content[:4] + bytes(4) + content[8:]


def normalize_ar(content: bytes) -> bytes:
    """Static libraries (`.a`) and Debian packages: the times of their members."""
    if not content.startswith(b"!<arch>\n"):
        raise NotApplicable
    parts, at = [content[:8]], 8
    while at + 60 <= len(content):
        header = content[at : at + 60]
        if header[58:] != b"`\n" or not header[48:58].strip().isdigit():
            raise NotApplicable
        end = at + 60 + int(header[48:58])
        end += end % 2
        parts += [header[:16], header[28:], content[at + 60 : end]]
        at = end
    return b"".join(parts)


def normalize_pyc(content: bytes) -> bytes:
    """Compiled Python (`.pyc`): the time of the source."""
    by_time = content[2:8] == b"\r\n\0\0\0\0"
    if len(content) < 16 or not by_time:
        raise NotApplicable
    return content[:8] + bytes(4) + content[12:]


def normalize_notebook(content: bytes) -> bytes:
    """Notebooks: when and how long each cell ran."""
    try:
        notebook = json.loads(content)
        for holder in (notebook, *notebook["cells"]):
            for name in ("execution", "papermill", "ExecuteTime"):
                holder.get("metadata", {}).pop(name, None)
    except (KeyError, TypeError, AttributeError, RecursionError, ValueError) as error:
        raise NotApplicable from error
    return json.dumps(notebook, sort_keys=True).encode()


_PNG = b"\x89PNG\r\n\x1a\n"
_DATED = (b"date:", b"creation time\0", b"modification time\0")


def normalize_png(content: bytes) -> bytes:
    """PNG images: the chunk and the texts that tell when they were made."""
    if not content.startswith(_PNG):
        raise NotApplicable
    return b"".join(chunk for kind, chunk in _chunks(content) if not _is_timestamp(kind, chunk[8:]))


def _is_timestamp(kind: bytes, data: bytes) -> bool:
    return kind == b"tIME" or (
        kind in (b"tEXt", b"zTXt", b"iTXt") and data.lower().startswith(_DATED)
    )


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_PNG)
    while at < len(content):
        if at + 12 > len(content):
            raise NotApplicable
        (length,) = struct.unpack_from(">I", content, at)
        yield content[at + 4 : at + 8], content[at : at + 12 + length]
        at += 12 + length


_PDF_TIMES = re.compile(
    rb"/(?:CreationDate|ModDate)\s*\([^)]{0,64}\)"
    rb"|/ID\s*\[\s*<[0-9A-Fa-f]{0,128}>\s*<[0-9A-Fa-f]{0,128}>\s*\]"
    rb"|<xmp:(?:Create|Modify|Metadata)Date>[^<]{0,64}<"
)


def normalize_pdf(content: bytes) -> bytes:
    """PDF documents: their dates, and the id that is made from them."""
    if not content.startswith(b"%PDF-"):
        raise NotApplicable
    return _PDF_TIMES.sub(b"", content)


def normalize_svg(content: bytes) -> bytes:
    """SVG drawings: the date among their metadata."""
    return re.sub(rb"<dc:date>[^<]{0,64}</dc:date>", b"", content)


_MARK = b"\x01"
"""Replaces what is removed: that something was there does matter."""

_DAY = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_MONTH = rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_CLOCK = rb"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE_NAME = rb"UTC|GMT|[ECMP][SD]T|[CEW]ES?T|BST|IST|JST|MSK"  # INFO is none
_ZONE = rb"(?: ?(?:Z|[+-]\d\d:?\d\d|" + _ZONE_NAME + rb")\b)?"
_TIMES = re.compile(
    rb"\b\d{4}[-/]\d\d[-/]\d\d(?:[T_ ]\d\d[:-]\d\d(?:[:-]\d\d(?:[.,]\d{1,9})?)?" + _ZONE + rb")?\b"
    rb"|\b(?:" + _DAY + rb",? )?(?:" + _MONTH + rb" {1,2}\d{1,2}|\d{1,2} " + _MONTH + rb" \d{4})"
    rb",? " + _CLOCK + rb"(?: [AP]M)?" + _ZONE + rb"(?: \d{4})?\b"
    rb"|\b" + _CLOCK + rb"(?: [AP]M)?" + _ZONE
)


def normalize_times(content: bytes) -> bytes:
    """Dates and times of day, as logs write them."""
    return _TIMES.sub(_MARK, _require_text(content))


_UNIT = rb"(?:ns|us|\xc2\xb5s|ms|s|secs?|seconds?|mins?|minutes?|hours?)"
_NUMBER = rb"\d{1,15}(?:\.\d{1,15})?(?:e[+-]?\d{1,3})?"
_DURATIONS = re.compile(
    rb"\[?\d{1,3}:\d\d(?::\d\d)?<[\d:?]{1,9}"  # a progress bar: what went by, what is left
    rb"|\b" + _NUMBER + rb" ?(?:[kMG]?i?B|it|steps?|samples?|examples?)/s\b"
    rb"|\b" + _NUMBER + rb" ?" + _UNIT + rb"\b"
)


def normalize_durations(content: bytes) -> bytes:
    """How long something took, or how fast it went: a number with its unit."""
    return _DURATIONS.sub(_MARK, _require_text(content))


_ADDRESSES = re.compile(rb"\bat 0x[0-9a-fA-F]{6,16}\b|\bpid[ =:]{1,3}\d{1,10}\b", re.IGNORECASE)


def normalize_addresses(content: bytes) -> bytes:
    """Addresses of objects in memory (`at 0x7f…`) and process ids (`pid 812`)."""
    return _ADDRESSES.sub(_MARK, _require_text(content))


def normalize_line_ends(content: bytes) -> bytes:
    """The line ends of a terminal."""
    return content.replace(b"\r\n", b"\n")


def _require_text(content: bytes) -> bytes:
    if b"\0" in content:
        raise NotApplicable
    return content


def _subtract(room: int, size: int) -> int:
    if size > room:
        raise NotApplicable
    return room - size


_BROKEN = (zlib.error, EOFError, OSError, ValueError, struct.error, OverflowError)
