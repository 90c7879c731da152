"""Which operation of S3 a request is, and on which bucket and key.

Buckets are addressed by the path (`http://s3.example/BUCKET/KEY`) or by the host
(`http://BUCKET.s3.example/KEY`). Which hosts are object stores must be known for the second way:
those of Amazon are, all others are named by an annotation of the Pod.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from clew.documents.ids import Locator
from clew.prov.locators import escape_path
from clew.witness.object_stores.access_log import LogLine

Operation = Literal[
    "get", "head", "put", "copy", "delete", "list", "begin-upload", "put-part", "copy-part",
    "complete-upload", "abort-upload", "delete-many", "post-form", "select", "properties", "other",
]  # fmt: skip

MAX_KEY_BYTES = 1024
_BUCKET = re.compile(r"(?!\.+$)[A-Za-z0-9._-]{1,255}")
_AMAZON = re.compile(
    r"(?:(?P<bucket>[a-z0-9.-]+)\.)?s3(?:[.-](?:accelerate|dualstack|fips|[a-z]{2}(?:-[a-z]+)+-\d))*"
    r"\.amazonaws\.com(?:\.cn)?"
)
_LISTINGS = frozenset({"", "versions", "uploads"})


class ObjectAddress(NamedTuple):
    """A bucket, and a key in it unless the request is about the bucket."""

    bucket: str
    key: bytes

    @property
    def locator(self) -> Locator:
        return object_locator(self.bucket, self.key)


class S3Request(NamedTuple):
    operation: Operation
    address: ObjectAddress


def object_locator(bucket: str, key: bytes) -> Locator:
    """`s3://BUCKET/KEY`; without a key, the bucket."""
    return Locator(f"s3://{bucket}/{escape_path(key)}" if key else f"s3://{bucket}")


def read_request(line: LogLine, stores: Sequence[str]) -> S3Request | None:
    """What a line of kind `s3` asks for; None if its address cannot be one of S3. `stores`: the
    hosts of object stores, as an annotation names them."""
    address = find_address(line, stores)
    if address is None:
        return None
    return S3Request(_find_operation(line, address), address)


def find_address(line: LogLine, stores: Sequence[str]) -> ObjectAddress | None:
    host = (line.host or "").lower().removesuffix(".")
    path = (line.path or "").partition("?")[0]
    if not path.startswith("/"):  # an absolute address, as a client of a proxy sends it
        return None
    bucket = find_bucket(host, stores)
    if bucket is None:
        first, _, rest = path[1:].partition("/")
        return _check_address(unquote_to_bytes(first).decode(errors="replace"), rest)
    return _check_address(bucket, path[1:])


def find_bucket(host: str, stores: Sequence[str]) -> str | None:
    """The bucket that a host name begins with; None where the path has it."""
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    for store in stores:
        suffix = store.lower().rpartition(":")[0] if re.search(r":\d+$", store) else store.lower()
        if name.endswith(f".{suffix}"):
            return name.removesuffix(f".{suffix}")
        if name == suffix:
            return None
    match = _AMAZON.fullmatch(name)
    return match["bucket"] if match else None


def read_copy_source(text: str) -> ObjectAddress | None:
    """The header `x-amz-copy-source`: `BUCKET/KEY` or `/BUCKET/KEY`."""
    path = text.partition("?")[0]
    raw = unquote_to_bytes(path).removeprefix(b"/")
    bucket, slash, key = raw.partition(b"/")
    if not slash or not key or len(key) > MAX_KEY_BYTES or b"\0" in key:
        return None
    name = bucket.decode(errors="replace")
    return ObjectAddress(name, key) if _BUCKET.fullmatch(name) else None


def _check_address(bucket: str, path: str) -> ObjectAddress | None:
    key = unquote_to_bytes(path)
    if not _BUCKET.fullmatch(bucket) or len(key) > MAX_KEY_BYTES or b"\0" in key:
        return None
    return ObjectAddress(bucket, key)


def _find_operation(line: LogLine, address: ObjectAddress) -> Operation:
    find = _ON_OBJECT.get(line.method or "") if address.key else None
    if find is not None:
        return find(line)
    sub = line.subresource or ""
    if not address.key:
        if line.method in ("GET", "HEAD"):
            return "list" if sub in _LISTINGS else "properties"
        if line.method == "POST":
            return "delete-many" if sub == "delete" else "post-form"
    return "other"


def _read_get(line: LogLine) -> Operation:
    sub = line.subresource or ""
    if sub:
        return "properties"
    return "list" if line.upload else "get"


def _read_head(_line: LogLine) -> Operation:
    return "head"


def _read_put(line: LogLine) -> Operation:
    if line.upload:
        return "copy-part" if line.copy_source else "put-part"
    if line.subresource:
        return "other"
    return "copy" if line.copy_source else "put"


def _read_post(line: LogLine) -> Operation:
    if line.upload:
        return "complete-upload"
    if line.subresource == "uploads":
        return "begin-upload"
    return "select" if line.subresource == "select" else "other"


def _read_delete(line: LogLine) -> Operation:
    if line.upload:
        return "abort-upload"
    return "other" if line.subresource else "delete"


_ON_OBJECT = {
    "GET": _read_get,
    "HEAD": _read_head,
    "PUT": _read_put,
    "POST": _read_post,
    "DELETE": _read_delete,
}
