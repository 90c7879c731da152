"""The content-addressed store: put bytes, get their digest; read bytes by digest.

Guarantees: content is named by the BLAKE3 digest of its bytes; after `flush` it survives a power
cut; nothing is named before it is synced; what was put is safe from a concurrent `gc` until this
Store is closed. Several processes may use one store at once; within a process, calls on one Store
take turns. After a failed write (a full disk) every later put or flush fails too: what was flushed
is complete, the rest is not stored.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clew.confined_files import HOST, Confined
from clew.documents.ids import Digest
from clew.errors import ClewError, Damaged, Full, NoContent, NotAllowed
from clew.store import content_reader, file_input, leases, store_directory
from clew.store.content_writer import ContentWriter
from clew.store.errors import REBUILD_HINT, Oversized, from_os
from clew.store.leases import StoreLock
from clew.store.types import (
    CheckReport,
    Problem,
    Reclaimed,
    Signature,
    Stored,
    format_digest,
    parse_digest,
)

if TYPE_CHECKING:
    from clew.store.garbage_collector import Live
    from clew.store.remotes import Remote
    from clew.store.remotes.download import Download
    from clew.store.remotes.pack_transfer import PackExport, PackImport
    from clew.store.remotes.upload import Progress, Upload, UploadTarget

_MOST_IN_MEMORY = 64 << 20


class Store:
    """A store in a directory; see `docs/formats/store.md`."""

    def __init__(self, path: Path, *, lease: str | None = None) -> None:
        """Open the store in `path`, or make one. `lease` names the work that will put content."""
        self.path = path
        self.writable = store_directory.prepare_directory(path)
        self._lock = threading.RLock()
        self._lease = lease or leases.ANONYMOUS
        try:
            self._store_lock = StoreLock(path / "lock")
        except OSError as error:
            raise from_os(error, doing=f"open the store {path}") from error
        try:
            self._index, self._damage = store_directory.open_index(
                path, store_lock=self._store_lock, writable=self.writable
            )
            if isinstance(self._damage, Full) and lease is not None:
                self._index.close()
                raise self._damage  # nothing could be put
        except BaseException:
            self._store_lock.close()
            raise
        self._reader = content_reader.ContentReader(self.path / "packs", self._index)
        self._writer = ContentWriter(
            self.path,
            index=self._index,
            store_lock=self._store_lock,
            lease=self._lease,
            refused=self._refusal(),
        )

    def _refusal(self) -> ClewError | None:
        """The error if the store cannot be written."""
        if self._damage is not None:
            return self._damage
        if self.writable:
            return None
        return NotAllowed(
            f"{self.path} cannot be written", hint="check the permissions of the project"
        )

    # -- write

    def put_file(
        self,
        path: bytes,
        *,
        expect: Signature | None = None,
        keep: bool = True,
        reread: bool = False,
        within: Confined = HOST,
    ) -> Stored:
        """Hash a file and store it; with keep=False only hash it.

        `reread`: also if its signature is known, since a mapped file can change and keep its times.
        `within`: the directory that the path is relative to and must not leave. Raises Changed if
        its signature is not `expect`, before or after reading.
        """
        with self._lock:
            (stored,) = file_input.put_files(
                self._writer, [path], [expect], keep=keep, reread=reread, within=within
            )
        if isinstance(stored, ClewError):
            raise stored
        return stored

    def put_files(
        self,
        paths: Sequence[bytes],
        *,
        expect: Sequence[Signature | None] | None = None,
        keep: bool = True,
        recalled: bool = False,
        within: Confined = HOST,
    ) -> list[Stored | ClewError]:
        """Store many files, which is cheaper than one by one. Errors are returned, not raised.
        `recalled`: `recall` found no stored content for the signatures in `expect`."""
        with self._lock:
            expected = expect if expect is not None else [None] * len(paths)
            return list(
                file_input.put_files(
                    self._writer, paths, expected, keep=keep, recalled=recalled, within=within
                )
            )

    def recall(self, signatures: Sequence[Signature]) -> list[Stored | None]:
        """The stored contents of files that had exactly these signatures; opens no file."""
        with self._lock:
            return list(file_input.recall_files(self._writer, signatures))

    def known_digests(self, signatures: Sequence[Signature]) -> list[str | None]:
        """The digests of the files that had exactly these signatures; their content may be gone."""
        with self._lock:
            rows = self._index.remembered(signatures)
            return [format_digest(row[0]) if row else None for row in rows]

    def put_stream(self, chunks: Iterable[bytes]) -> Stored:
        """Store the bytes of an iterable, of any length."""
        with self._lock:
            return self._writer.put_stream(chunks)

    def put_bytes(self, data: bytes) -> Stored:
        with self._lock:
            return self._writer.put_data(data)

    def put_all(self, contents: Iterable[bytes]) -> list[Stored]:
        """Store many small contents, which is cheaper than one by one."""
        with self._lock:
            return self._writer.put_all(list(contents))

    @property
    def broken(self) -> bool:
        """Whether a write has failed: this Store accepts no more."""
        return self._writer.broken

    @property
    def added(self) -> int:
        """Bytes of packs this Store has written; exact after `flush`."""
        return self._writer.added

    def flush(self) -> None:
        """After this returns, everything put so far survives a power cut and may be named."""
        with self._lock:
            self._writer.flush()

    def close(self) -> None:
        """Flush and release the lease. After a failed write there is nothing to flush."""
        with self._lock:
            try:
                self._writer.close()
            finally:
                self._index.close()
                self._store_lock.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- look up

    def has(self, digest: Digest) -> bool:
        """Whether the content is stored, or will be by the next flush."""
        raw = parse_digest(digest)
        if raw is None:
            return False
        with self._lock:
            return self._writer.held.get(raw) is True or self._index.has(raw)

    def size(self, digest: Digest) -> int:
        with self._lock:
            return sum(length for _, length in self._reader.parts(self._stored(digest)))

    # -- read

    def read(self, digest: Digest) -> Iterator[bytes]:
        """The bytes, verified while they are read; raises Damaged at the end at the latest."""
        return content_reader.fill_holes(self._reader.read(self._stored(digest)))

    def read_whole(self, digest: Digest, *, most: int = _MOST_IN_MEMORY) -> bytes:
        """All bytes at once. A record from elsewhere may name any content as a listing or a link,
        also one of many GiB of zeros: then this raises Oversized, and reads nothing."""
        if (size := self.size(digest)) > most:
            raise Oversized(
                f"{digest} has {size} bytes, where a record names at most {most}",
                hint="the record may be forged: clew list tells where it was made",
            )
        return b"".join(self.read(digest))

    def read_part(self, digest: Digest, start: int, stop: int) -> Iterator[bytes]:
        """The bytes from `start` to before `stop`; reads only the chunks that contain them."""
        return content_reader.fill_holes(self._reader.part(self._stored(digest), start, stop))

    def restore(
        self,
        digest: Digest,
        to: Path | bytes,
        *,
        mode: int | None = None,
        mtime: int | None = None,
        sync: bool = True,
    ) -> None:
        """Write the content to a file, verified and complete or not at all; zeros become holes."""
        buffers = self._reader.read(self._stored(digest))
        content_reader.restore_file(buffers, os.fsencode(to), mode=mode, mtime=mtime, sync=sync)

    def _stored(self, digest: Digest) -> bytes:
        """Parse the digest of a stored content; flushes if the content is still in memory."""
        raw = parse_digest(digest)
        if raw is None:
            raise NoContent(f"{digest} is not a content id")
        with self._lock:
            if not self._index.has(raw):
                if raw not in self._writer.held:
                    raise NoContent(f"the bytes of {digest} are not stored")
                self._writer.flush()
        return raw

    # -- transfer

    @contextmanager
    def start_upload(self, target: UploadTarget, progress: Progress) -> Iterator[Upload]:
        """Send contents of this store to a remote or a server that lacks them."""
        from clew.store.remotes.upload import Upload

        upload = Upload(self._index, self._reader, target, progress)
        try:
            yield upload
        finally:
            upload.close()

    def start_download(self, remote: Remote, progress: Progress) -> Download:
        """Fetch contents that this store lacks from a remote; they are leased and flushed."""
        from clew.store.remotes.download import Download

        return Download(remote, self._writer, self._reader, progress)

    def pack_import(self) -> PackImport:
        """Accept contents that this store lacks in packs; they are leased and flushed."""
        from clew.store.remotes.pack_transfer import PackImport

        return PackImport(self._index, self._writer, self._reader)

    def pack_export(self) -> PackExport:
        """Send contents of this store in packs, on request."""
        from clew.store.remotes.pack_transfer import PackExport

        return PackExport(self._index, self._reader)

    def hold(self, digests: Iterable[str]) -> list[bytes]:
        """Protect contents from gc until this Store is closed; NoContent if one is not stored."""
        raw = [parse_digest(digest) or b"" for digest in digests]
        with self._lock:
            if self.writable:
                self._writer.hold(raw)
            there = {digest for digest, whole in self._index.known(raw) if whole}
        for digest in raw:
            if digest not in there:
                raise NoContent(
                    f"the bytes of {format_digest(digest)} are not stored", hint="clew fsck"
                )
        return raw

    # -- maintain

    def fsck(self) -> CheckReport:
        """Hash every chunk and file again and compare the packs with the index."""
        with self._lock:
            self._writer.flush()
            from clew.store import consistency_check

            report = consistency_check.check_store(self.path, self._index, self._reader)
            if isinstance(self._damage, Damaged):
                report.problems.append(Problem(f"{self._damage}; {REBUILD_HINT}", "index.db"))
            return report

    def gc(self, live: Live, *, dry_run: bool = False) -> Reclaimed:
        """Remove every content that is neither in `live` nor held by a lease of running work.

        `live` must be evaluated after the sweep has begun (a function or a lazy iterator), since
        work that ends later names its content and releases its lease in the meantime. Contents that
        this Store itself has put are kept.
        """
        with self._lock:
            self._check_writable()
            self._writer.flush()
            from clew.store import garbage_collector

            sweep = garbage_collector.Sweep(self.path, self._index, self._store_lock, self._reader)
            return sweep.run(live, dry_run=dry_run)

    def forget_damaged(self, digest: Digest) -> None:
        """Forget a damaged content with its damaged chunks, so that it can be put again. Other
        contents with these chunks cannot be read either, and are forgotten too."""
        with self._lock:
            self._check_writable()
            self._writer.flush()
            if not self.has(digest):
                return
            raw = self._stored(digest)
            dead = {raw, *self._reader.find_damaged(raw)}
            with self._store_lock.exclusive(), self._index.writing() as db:
                self._index.drop(db, packs=set(), digests=dead)
                self._index.drop_dangling(db)
            self._writer.held.clear()  # look each up again

    def drop_leases(self, lease: str) -> None:
        """Remove the leases of this name whose holders are dead; their work was recovered."""
        with self._lock:
            leases.remove_lapsed(self.path / "leases", lease, self._store_lock)

    def _check_writable(self) -> None:
        refusal = self._refusal()
        if refusal is not None:
            raise refusal
