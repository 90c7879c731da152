"""Bytes to and from fresh buckets, from this machine, with the caller's credentials.

Each recorded bucket has a fresh one beside it: made for the reproduction and deleted at its end.
S3 has no request for that in obstore; its signed addresses do it.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from http import HTTPStatus
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Self, cast

import httpx2
import obstore
from blake3 import blake3
from obstore import exceptions
from obstore.store import S3Store

from clew.api.reproduction.record_reader import RecordReader
from clew.errors import ClewError, NotAllowed, NotFound
from clew.replay.pods.stages import Expected, Restored

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import S3Config

_SIGNED = timedelta(minutes=5)
_SHOWN_TEXT = 200
_PIECE = 8 << 20
_QUOTE = '"'


class ObjectAccess:
    """The fresh buckets of one reproduction. Use it in a `with`: they are deleted at its end."""

    def __init__(
        self,
        buckets: Mapping[str, str],
        options: Mapping[str, str],
        *,
        report_left: Callable[[str], None],
    ) -> None:
        """`buckets`: the fresh name of each recorded one; `options`: of obstore; `report_left` is
        told of a bucket that cannot be deleted at the end, and why."""
        self._report_left = report_left
        self._recorded = {name: _open_bucket(name, options) for name in buckets}
        self._fresh = dict(buckets)
        self._stores = {name: _open_bucket(fresh, options) for name, fresh in buckets.items()}
        self._made: dict[str, S3Store] = {}
        """By the fresh name."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove_buckets()

    def make_buckets(self) -> None:
        for name, store in self._stores.items():
            _request(store, "PUT", f"a bucket for {name} cannot be made")
            self._made[self._fresh[name]] = store

    def remove_buckets(self) -> None:
        for left in _remove_all(self._made):
            self._report_left(left)
        self._made.clear()

    def restore(self, record: RecordReader, restore: Sequence[Restored]) -> None:
        for one in restore:
            path = one.place.path.decode()
            content = self._read_version(one) if one.digest is None else record.read(one.digest)
            with TemporaryFile() as file:  # obstore cannot read an object while it writes another
                file.writelines(content)
                file.seek(0)
                obstore.put(self._stores[one.place.container], path, file)

    def _read_version(self, one: Restored) -> Iterator[bytes]:
        """The bytes of an old version, from the recorded bucket."""
        path, options = one.place.path.decode(), {"version": one.version}
        try:
            found = obstore.get(
                self._recorded[one.place.container], path, options=cast("GetOptions", options)
            )
        except (exceptions.BaseError, FileNotFoundError, PermissionError) as error:
            raise NotFound(
                f"the version {one.version} of {one.place.locator} cannot be read any more",
                hint="check your rights on the bucket, and how long it keeps old versions",
            ) from error
        for piece in found.stream(min_chunk_size=_PIECE):
            yield bytes(piece)

    def hash(self, expect: Sequence[Expected]) -> list[str | None]:
        """The digest of each object, by the algorithm of the recorded one; None without it."""
        return [self._hash(one) for one in expect]

    def _hash(self, one: Expected) -> str | None:
        algorithm = one.digest.partition(":")[0]
        try:
            found = obstore.get(self._stores[one.place.container], one.place.path.decode())
        except (FileNotFoundError, exceptions.NotFoundError):
            return None
        if algorithm == "etag":
            return f"etag:{(found.meta['e_tag'] or '').strip(_QUOTE)}"
        digest = blake3() if algorithm == "blake3" else hashlib.new(algorithm)
        for piece in found.stream(min_chunk_size=_PIECE):
            digest.update(piece)
        return f"{algorithm}:{digest.hexdigest()}"


def remove_buckets(names: Iterable[str], options: Mapping[str, str]) -> list[str]:
    """Remove fresh buckets that a killed command left. Returns what to say of each one that is
    still there."""
    return _remove_all({name: _open_bucket(name, options) for name in names})


def _remove_all(stores: Mapping[str, S3Store]) -> list[str]:
    problems = {name: _remove_bucket(store) for name, store in stores.items()}
    return [
        f"the bucket {name} cannot be deleted: {why}"
        for name, why in problems.items()
        if why is not None
    ]


def _remove_bucket(store: S3Store) -> str | None:
    """Why it cannot be removed; None: there is no such bucket any more."""
    try:
        _request(store, "HEAD", "it cannot be reached")
        for batch in obstore.list(store):
            obstore.delete(store, [one["path"] for one in batch])
        _request(store, "DELETE", "it is not empty, or keeps old versions")
    except NotFound:
        return None
    except (ClewError, httpx2.HTTPError, exceptions.BaseError, OSError) as error:
        return str(error).partition("\n")[0][:_SHOWN_TEXT]
    return None


def _request(store: S3Store, method: str, failure: str) -> None:
    address = obstore.sign(store, method, "", _SIGNED)  # type: ignore[call-overload]
    answer = httpx2.request(method, address, timeout=30.0)
    if not answer.is_success:
        kind = NotFound if answer.status_code == HTTPStatus.NOT_FOUND else NotAllowed
        raise kind(
            f"{failure}: HTTP status {answer.status_code}",
            hint="check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_ENDPOINT_URL",
        )


def _open_bucket(name: str, options: Mapping[str, str]) -> S3Store:
    plain = options.get("aws_endpoint_url", "").startswith("http://")
    return S3Store(
        name, config=cast("S3Config", dict(options)), client_options={"allow_http": plain}
    )
