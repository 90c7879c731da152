"""Files in a bucket, streamed: memory does not grow with their size.

The process that performs a run and the helper of each Pod use it, each with the credentials of its
own environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import obstore
from blake3 import blake3
from msgspec import Struct
from obstore import exceptions
from obstore.store import S3Store

from clew.errors import ClewError, NotAllowed, NotFound, Unavailable, UsageError

if TYPE_CHECKING:
    from obstore.store import S3Config

SCHEME = "s3://"
SECRET = "clew-artifacts"  # noqa: S105 -- its name
"""The Secret of a namespace with the credentials that Pods have for the store."""
_MAX_RETRIES = 30
_RETRY_TIMEOUT = timedelta(minutes=2)
"""How long a store may be away before a task fails for it."""
_PIECE = 8 << 20
_MAX_PARTS = 9_000
"""S3 allows 10,000 for one object."""
_ABSENT = (FileNotFoundError, exceptions.NotFoundError)
_REFUSED = (PermissionError, exceptions.PermissionDeniedError, exceptions.UnauthenticatedError)
_CODE = re.compile(r"<Code>(\w+)</Code>")
_REQUEST_PREFIX = re.compile(r"^.* - ")
"""The prefix with the request and its duration."""
_URL = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", re.DOTALL)


class StoredObject(Struct, frozen=True):
    """An object as a listing shows it."""

    url: str
    size: int
    etag: str | None = None


class StoredFile(Struct, frozen=True):
    """An object whose content was read."""

    url: str
    size: int
    digest: str
    etag: str | None = None


def split_url(url: str) -> tuple[str, str]:
    """The bucket and the key of an `s3://` URL."""
    match = _URL.fullmatch(url)
    if match is None or ".." in (match[2] or "").split("/"):
        raise UsageError(f"{url} is not the URL of a bucket", hint="s3://BUCKET/PREFIX")
    return match[1], match[2] or ""


class ArtifactStore:
    """Safe to use from any thread."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """`options`: `Settings.s3`."""
        self._options = dict(options)
        self._stores: dict[str, S3Store] = {}

    def read(self, url: str, *, most: int) -> bytes | None:
        """A small object; None if there is none. `most`: bytes, beyond which it is refused."""
        store, key = self._locate(url)
        with _errors(url):
            try:
                found = obstore.get(store, key)
            except _ABSENT:
                return None
            if found.meta["size"] > most:
                raise ClewError(f"{url} has {found.meta['size']} bytes, more than {most}")
            return bytes(found.bytes())

    def write(self, url: str, data: bytes) -> None:
        store, key = self._locate(url)
        with _errors(url):
            obstore.put(store, key, data)

    def find(self, url: str) -> StoredObject | None:
        store, key = self._locate(url)
        with _errors(url):
            try:
                meta = obstore.head(store, key)
            except _ABSENT:
                return None
        return StoredObject(url, meta["size"], _strip(meta["e_tag"]))

    def list(self, url: str) -> list[StoredObject]:
        """The objects below `url`, as of a directory."""
        store, key = self._locate(url)
        bucket = url[: len(url) - len(key)]
        with _errors(url):
            metas = [meta for batch in obstore.list(store, key.rstrip("/")) for meta in batch]
        found = [
            StoredObject(f"{bucket}{meta['path']}", meta["size"], _strip(meta["e_tag"]))
            for meta in metas
        ]
        return sorted(found, key=lambda one: one.url)

    def upload(self, file: BinaryIO, url: str) -> StoredFile:
        """Store an open file. Size and digest are those of the bytes that were stored."""
        store, key = self._locate(url)
        digest, size = blake3(), 0

        def pieces() -> Iterator[bytes]:
            nonlocal size
            while piece := file.read(_PIECE):
                digest.update(piece)
                size += len(piece)
                yield piece

        part = max(_PIECE, os.fstat(file.fileno()).st_size // _MAX_PARTS + 1)
        with _errors(url):
            result = obstore.put(store, key, pieces(), chunk_size=part, max_concurrency=4)
        return StoredFile(url, size, f"blake3:{digest.hexdigest()}", _strip(result["e_tag"]))

    def download(self, url: str, path: Path) -> StoredFile:
        store, key = self._locate(url)
        digest, size = blake3(), 0
        path.parent.mkdir(parents=True, exist_ok=True)
        with _errors(url), path.open("wb") as file:
            found = obstore.get(store, key)
            for piece in found.stream(min_chunk_size=_PIECE):
                digest.update(piece)
                size += file.write(piece)
        etag = _strip(found.meta["e_tag"])
        return StoredFile(url, size, f"blake3:{digest.hexdigest()}", etag)

    def _locate(self, url: str) -> tuple[S3Store, str]:
        bucket, key = split_url(url)
        store = self._stores.get(bucket)
        if store is None:
            plain = self._options.get("aws_endpoint_url", "").startswith("http://")
            store = self._stores[bucket] = S3Store(
                bucket,
                config=cast("S3Config", self._options),
                client_options={
                    "allow_http": plain,
                    "connect_timeout": timedelta(seconds=10),
                    "timeout": timedelta(minutes=30),
                },
                retry_config={"max_retries": _MAX_RETRIES, "retry_timeout": _RETRY_TIMEOUT},
            )
        return store, key


@contextmanager
def _errors(url: str) -> Iterator[None]:
    try:
        yield
    except (exceptions.BaseError, FileNotFoundError, PermissionError) as error:
        raise _explain(url, error) from error


def _explain(url: str, error: Exception) -> ClewError:
    text = str(error)
    code = _CODE.search(text)
    why = code[1] if code else _REQUEST_PREFIX.sub("", text.strip().split("\n")[0])[:200]
    if isinstance(error, _REFUSED) or "403" in text[:300]:
        return NotAllowed(
            f"the store refused {url}: {why}",
            hint="check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; those of Pods are in the"
            f" Secret {SECRET}",
        )
    if isinstance(error, _ABSENT):
        return NotFound(f"{url} does not exist: {why}", hint="create the bucket first")
    return Unavailable(
        f"the store of {url} cannot be reached: {why}", hint="check AWS_ENDPOINT_URL, and try again"
    )


def _strip(etag: str | None) -> str | None:
    return etag.removeprefix("W/").strip('"') if etag else None
