"""Multipart uploads: their parts become one version when the upload is completed.

The answer that completes an upload has the ETag in its body, which the log does not contain. It is
made of the parts' ETags, which it does: the MD5 of their digests, and their number.
"""

import hashlib
import re

import msgspec

from clew.witness.object_stores.access_log import MAX_SUM

_MD5 = re.compile(r'"?([0-9a-f]{32})"?')
MAX_PARTS = 10_000  # S3's own limit


class Part(msgspec.Struct, frozen=True, array_like=True):
    etag: str  # empty if unknown
    size: int


class Upload(msgspec.Struct):
    """An upload that was begun. Its parts by number: a part that is sent again counts once."""

    parts: dict[int, Part] = {}

    def add(self, number: int, part: Part) -> bool:
        """False if there is no such part number in S3."""
        if not 1 <= number <= MAX_PARTS:
            return False
        self.parts[number] = part
        return True

    @property
    def size(self) -> int:
        return min(sum(part.size for part in self.parts.values()), MAX_SUM)

    @property
    def etag(self) -> str | None:
        """The ETag of all parts together; None if that of a part is unknown or no MD5."""
        digests = []
        for _, part in sorted(self.parts.items()):
            match = _MD5.fullmatch(part.etag)
            if match is None:
                return None
            digests.append(bytes.fromhex(match[1]))
        if not digests:
            return None
        whole = hashlib.md5(b"".join(digests), usedforsecurity=False).hexdigest()
        return f"{whole}-{len(digests)}"
