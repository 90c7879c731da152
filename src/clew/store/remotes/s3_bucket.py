"""A remote in an S3 bucket, through obstore.

S3 stores objects atomically and is consistent after a put, as `ObjectStorage` requires. The request
signature covers the bytes of every put, so they arrive unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import obstore
from obstore import exceptions
from obstore.store import S3Store

from clew.errors import ClewError, NotAllowed, NotFound
from clew.store.errors import Unreachable
from clew.store.remotes.object_storage import TRY_AGAIN, damaged_object, missing_object

if TYPE_CHECKING:
    from obstore.store import S3Config

_RETRY_TIMEOUT = timedelta(seconds=20)
"""How long requests to a failing server are retried."""
_REQUEST_TIMEOUT = timedelta(minutes=15)
"""How long one object may take: 16 MB over a slow line."""
_MAX_UNRANGED = 256 << 20
"""Maximum size of a pack that is fetched completely because the server has no ranges."""
_ABSENT = (FileNotFoundError, exceptions.NotFoundError)
_REFUSED = (
    PermissionError,
    exceptions.PermissionDeniedError,
    exceptions.UnauthenticatedError,
)
_CODE = re.compile(r"<Code>(\w+)</Code>")
"""The error code of S3."""
_REQUEST_PREFIX = re.compile(r"^.* - ")
"""The prefix with the request and its duration."""


class S3Storage:
    """A remote below a prefix of a bucket."""

    def __init__(self, url: str, bucket: str, prefix: str, options: Mapping[str, str]) -> None:
        self.url = url
        self._no_ranges = False
        plain = options.get("aws_endpoint_url", "").startswith("http://")
        with self._errors():
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                config=cast("S3Config", dict(options)),
                client_options={
                    "allow_http": plain,
                    "connect_timeout": timedelta(seconds=10),
                    "timeout": _REQUEST_TIMEOUT,
                },
                retry_config={"max_retries": 4, "retry_timeout": _RETRY_TIMEOUT},
            )

    def make(self) -> None:
        """Nothing to do: users create their buckets themselves."""

    def top_level_names(self) -> set[str]:
        with self._errors():
            listing = obstore.list_with_delimiter(self._store)
        return {*listing["common_prefixes"], *(meta["path"] for meta in listing["objects"])}

    def names(self, directory: str) -> list[str]:
        with self._errors():
            paths = [m["path"] for batch in obstore.list(self._store, directory) for m in batch]
        return sorted(path.removeprefix(f"{directory}/") for path in paths)

    def get(self, name: str, *, most: int) -> bytes | None:
        with self._errors():
            try:
                found = obstore.get(self._store, name)
                if found.meta["size"] > most:
                    raise damaged_object(self.url, name)
                return bytes(found.bytes())
            except _ABSENT:
                return None

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        if not ranges:
            return []
        if not self._no_ranges:
            try:
                return self._get_ranges(name, ranges)
            except _NoRangesError:
                self._no_ranges = True
        whole = self.get(name, most=_MAX_UNRANGED)
        if whole is None:
            raise missing_object(self.url, name)
        found = [whole[position : position + length] for position, length in ranges]
        if [len(data) for data in found] != [length for _, length in ranges]:
            raise damaged_object(self.url, name)
        return found

    def _get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        starts = [position for position, _ in ranges]
        lengths = [length for _, length in ranges]
        with self._errors():
            try:
                found = obstore.get_ranges(self._store, name, starts=starts, lengths=lengths)
            except _ABSENT:
                raise missing_object(self.url, name) from None
            except exceptions.GenericError as error:
                text = str(error)
                if "non-partial" in text:  # some servers return a range without the status 206
                    raise _NoRangesError from error
                if "416" in text or "range" in text.lower():
                    raise damaged_object(self.url, name) from error
                raise
        if [len(data) for data in found] != lengths:
            raise damaged_object(self.url, name)
        return [bytes(data) for data in found]

    def put(self, name: str, data: bytes) -> None:
        with self._errors():
            obstore.put(self._store, name, data, use_multipart=False)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (exceptions.BaseError, FileNotFoundError, PermissionError) as error:
            raise self._convert_error(error) from error

    def _convert_error(self, error: BaseException) -> ClewError:
        text = str(error)
        code = _CODE.search(text)
        why = code[1] if code else _REQUEST_PREFIX.sub("", text.strip().split("\n")[0])
        if isinstance(error, _REFUSED) or "status code: 403" in text:
            return NotAllowed(
                f"{self.url} refused the request: {why}",
                hint="check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and their permissions",
            )
        if isinstance(error, _ABSENT) or "status code: 404" in text:
            return NotFound(f"{self.url} does not exist: {why}", hint="create the bucket first")
        return Unreachable(
            f"{self.url} cannot be reached: {why}", hint=f"check AWS_ENDPOINT_URL, and {TRY_AGAIN}"
        )


class _NoRangesError(Exception):
    """The server does not support ranges."""
