"""One line of the access log that the sidecar writes.

`agents.sidecars.envoy_config` says what a line contains. The line is untrusted: a client chooses
most of it, so each field has a limit here, and what does not fit makes the line unreadable. That
is counted and reported, never passed over.
"""

from typing import Literal

import msgspec

MAX_LINE_BYTES = 64 << 10
MAX_PATH = 16 << 10
_MAX_TEXT = 4096
_MAX_MICROSECONDS = 10**15
_MAX_BYTES = 2**60
MAX_SUM = 2**62
"""Of such numbers. What is written down has 64 bits; a forged log must not end the agent."""
_MAX_TIME = 2**61

LineKind = Literal["s3", "http", "tls", "tcp"]


class LogLine(msgspec.Struct, frozen=True, kw_only=True):
    """A request, or a connection that was passed through unread.

    Times are microseconds since the beginning, and null where it did not come to that.
    """

    kind: LineKind
    start: str  # seconds since 1970, with nanoseconds
    read_us: int | None = None  # the last byte of the request was read
    answer_us: int | None = None  # the first byte of the answer arrived
    all_us: int | None = None
    flags: str | None = None  # how Envoy says that something failed
    received: int = 0
    sent: int = 0
    peer: str | None = None  # address and port that the client connected to
    host: str | None = None
    sni: str | None = None
    method: str | None = None
    status: int | None = None
    path: str | None = None  # without the query
    subresource: str | None = None
    version: str | None = None
    upload: str | None = None
    part: str | None = None
    prefix: str | None = None
    caller: str | None = None
    signed_by: str | None = None  # the caller of a presigned URL
    range: str | None = None
    length: str | None = None
    content_range: str | None = None
    etag: str | None = None
    answer_version: str | None = None
    copy_source: str | None = None
    copy_version: str | None = None
    decoded_length: str | None = None
    sha256: str | None = None

    @property
    def began(self) -> int:
        """Nanoseconds since 1970."""
        seconds, _, fraction = self.start.partition(".")
        return int(seconds) * 10**9 + int(fraction[:9].ljust(9, "0"))

    @property
    def request_read(self) -> int:
        """When the last byte of the request had been sent: what was read later is not in it."""
        return self.began + 1000 * (self.read_us or 0)

    @property
    def answered(self) -> int:
        """When the first byte of the answer arrived: what was written earlier cannot have it."""
        return self.began + 1000 * (self.answer_us or self.all_us or 0)

    @property
    def ended(self) -> int:
        return self.began + 1000 * (self.all_us or 0)

    @property
    def failed(self) -> bool:
        """Whether the connection broke on the way."""
        return self.flags not in (None, "", "-")


_decoder = msgspec.json.Decoder(LogLine)


def parse_line(line: bytes) -> LogLine | None:
    """The line, or None if it is not one that the sidecar writes."""
    if len(line) > MAX_LINE_BYTES:
        return None
    try:
        found = _decoder.decode(line)
        began = found.began
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, RecursionError):
        return None
    return found if 0 <= began < _MAX_TIME and _has_sane_values(found) else None


def _has_sane_values(line: LogLine) -> bool:
    for name, value in msgspec.structs.asdict(line).items():
        if isinstance(value, str):
            if len(value) > (MAX_PATH if name == "path" else _MAX_TEXT) or "\0" in value:
                return False
        elif isinstance(value, int):
            most = _MAX_MICROSECONDS if name.endswith("_us") else _MAX_BYTES
            if not 0 <= value <= most:
                return False
    return True
