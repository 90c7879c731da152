"""A remote in an S3 bucket, through obstore.

S3 puts objects whole and is consistent after a put, which is all that is asked of a place. A
signature covers the bytes of every put, so what arrives there is what was sent.
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
from clew.store.remotes.object_storage import AGAIN, missing, spoilt

if TYPE_CHECKING:
    from obstore.store import S3Config

_PATIENCE = timedelta(seconds=20)
"""How long a server that fails is asked again."""
_REQUEST = timedelta(minutes=15)
"""How long one object may take: one of 16 MB over a slow line."""
_WHOLE = 256 << 20
"""Bytes of a pack that is fetched whole, where a server gives no ranges."""
_ABSENT = (FileNotFoundError, exceptions.NotFoundError)
_REFUSED = (
    PermissionError,
    exceptions.PermissionDeniedError,
    exceptions.UnauthenticatedError,
)
_CODE = re.compile(r"<Code>(\w+)</Code>")
"""What S3 itself calls the error."""
_FIRST = re.compile(r"^.* - ")
"""Which request it was, and how long it took."""


class Bucket:
    """A remote below a prefix of a bucket."""

    def __init__(self, url: str, bucket: str, prefix: str, options: Mapping[str, str]) -> None:
        self.url = url
        self._whole_only = False
        plain = options.get("aws_endpoint_url", "").startswith("http://")
        with self._errors():
            self._store = S3Store(
                bucket,
                prefix=prefix or None,
                config=cast("S3Config", dict(options)),
                client_options={
                    "allow_http": plain,
                    "connect_timeout": timedelta(seconds=10),
                    "timeout": _REQUEST,
                },
                retry_config={"max_retries": 4, "retry_timeout": _PATIENCE},
            )

    def make(self) -> None:
        """A bucket is made by its owner; below it nothing has to be made."""

    def tops(self) -> set[str]:
        with self._errors():
            found = obstore.list_with_delimiter(self._store)
        return {*found["common_prefixes"], *(meta["path"] for meta in found["objects"])}

    def names(self, directory: str) -> list[str]:
        with self._errors():
            found = [m["path"] for batch in obstore.list(self._store, directory) for m in batch]
        return sorted(path.removeprefix(f"{directory}/") for path in found)

    def get(self, name: str, *, most: int) -> bytes | None:
        with self._errors():
            try:
                found = obstore.get(self._store, name)
                if found.meta["size"] > most:
                    raise spoilt(self.url, name)
                return bytes(found.bytes())
            except _ABSENT:
                return None

    def get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        if not ranges:
            return []
        if not self._whole_only:
            try:
                return self._get_ranges(name, ranges)
            except _NoRangesError:
                self._whole_only = True
        whole = self.get(name, most=_WHOLE)
        if whole is None:
            raise missing(self.url, name)
        found = [whole[position : position + length] for position, length in ranges]
        if [len(data) for data in found] != [length for _, length in ranges]:
            raise spoilt(self.url, name)
        return found

    def _get_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        starts = [position for position, _ in ranges]
        lengths = [length for _, length in ranges]
        with self._errors():
            try:
                found = obstore.get_ranges(self._store, name, starts=starts, lengths=lengths)
            except _ABSENT:
                raise missing(self.url, name) from None
            except exceptions.GenericError as error:
                text = str(error)
                if "non-partial" in text:  # some servers answer a range without saying so
                    raise _NoRangesError from error
                if "416" in text or "range" in text.lower():
                    raise spoilt(self.url, name) from error
                raise
        if [len(data) for data in found] != lengths:
            raise spoilt(self.url, name)
        return [bytes(data) for data in found]

    def put(self, name: str, data: bytes) -> None:
        with self._errors():
            obstore.put(self._store, name, data, use_multipart=False)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (exceptions.BaseError, FileNotFoundError, PermissionError) as error:
            raise self._said(error) from error

    def _said(self, error: BaseException) -> ClewError:
        text = str(error)
        found = _CODE.search(text)
        why = found[1] if found else _FIRST.sub("", text.strip().split("\n")[0])
        if isinstance(error, _REFUSED) or "status code: 403" in text:
            return NotAllowed(
                f"{self.url} refuses: {why}",
                hint="check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and what they may do",
            )
        if isinstance(error, _ABSENT) or "status code: 404" in text:
            return NotFound(f"{self.url} is not there: {why}", hint="make the bucket first")
        return Unreachable(
            f"{self.url} cannot be reached: {why}", hint=f"check AWS_ENDPOINT_URL, and {AGAIN}"
        )


class _NoRangesError(Exception):
    """The server gives objects whole, or does not say when it does not."""
