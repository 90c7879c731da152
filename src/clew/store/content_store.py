"""The store: bytes go in and get a name, a name gives the bytes back.

What it guarantees: content is named by the BLAKE3 digest of its bytes; after `flush` it survives a
power cut; nothing is ever named before it is synced; what a put has returned is safe from a
concurrent `gc` until this Store is closed. Several processes may use one store at once; within one
process, calls on one Store take turns. After a failed write (a full disk) the Store takes no more:
what was flushed is whole, what was not is not stored, and every later put or flush says so.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from clew.confined_files import HOST, Confined
from clew.errors import (
    ClewError,
    Damaged,
    Full,
    NoContent,
    NotAllowed,
    NotFound,
    UsageError,
)
from clew.store import content_reader, file_input, leases, open_store
from clew.store.content_writer import Writer
from clew.store.errors import Oversized, from_os
from clew.store.leases import Gate
from clew.store.types import (
    PREFIX,
    Problem,
    Reclaimed,
    Report,
    Signature,
    Stored,
    digest_of,
    named,
)

if TYPE_CHECKING:
    from clew.store.garbage_collector import Live
    from clew.store.remotes import Remote
    from clew.store.remotes.download import Receiving
    from clew.store.remotes.pack_export import Giving
    from clew.store.remotes.pack_import import Taking
    from clew.store.remotes.upload import Progress, Sending, There

_MOST_IN_MEMORY = 64 << 20


class Store:
    """A store in a directory; see `docs/formats/store.md`."""

    def __init__(self, path: Path, *, lease: str | None = None) -> None:
        """Open the store in `path`, or make one. `lease` names the work that will put content."""
        self.path = path
        self.writable = open_store.make(path)
        self._lock = threading.RLock()
        self._lease = lease or leases.ANONYMOUS
        try:
            self._gate = Gate(path / "lock")
        except OSError as error:
            raise from_os(error, doing=f"open the store {path}") from error
        try:
            self._index, self._damage = open_store.index(
                path, gate=self._gate, writable=self.writable
            )
            if isinstance(self._damage, Full) and lease is not None:
                self._index.close()
                raise self._damage  # nothing could be put
        except BaseException:
            self._gate.close()
            raise
        self._use_index()

    def _use_index(self) -> None:
        self._reader = content_reader.Reader(self.path / "packs", self._index)
        self._writer = Writer(
            self.path,
            index=self._index,
            gate=self._gate,
            lease=self._lease,
            refused=self._refusal(),
        )

    def _refusal(self) -> ClewError | None:
        """Why nothing can be written, if so."""
        if self._damage is not None:
            return self._damage
        if self.writable:
            return None
        return NotAllowed(
            f"{self.path} cannot be written", hint="check the permissions of the project"
        )

    # -- putting

    def put_file(
        self,
        path: bytes,
        *,
        expect: Signature | None = None,
        keep: bool = True,
        anew: bool = False,
        within: Confined = HOST,
    ) -> Stored:
        """Hash a file and store it; with keep=False only hash it; with anew=True also where its
        signature is known: a file may be written through memory and keep its times. `within`: the
        directory that the path starts from, and does not lead out of.

        Raises Changed when its signature is not `expect`, before or after reading, or changes while
        it is read: bytes that were not the expected ones are never claimed.
        """
        with self._lock:
            (found,) = file_input.put(
                self._writer, [path], [expect], keep=keep, anew=anew, within=within
            )
        if isinstance(found, ClewError):
            raise found
        return found

    def put_files(
        self,
        paths: Sequence[bytes],
        *,
        expect: Sequence[Signature | None] | None = None,
        keep: bool = True,
        within: Confined = HOST,
    ) -> list[Stored | ClewError]:
        """Many files at once, which is cheaper than one by one. What was refused is returned."""
        with self._lock:
            expected = expect if expect is not None else [None] * len(paths)
            return list(file_input.put(self._writer, paths, expected, keep=keep, within=within))

    def recall(self, signatures: Sequence[Signature]) -> list[Stored | None]:
        """The stored contents of files that had exactly these signatures; no file is touched."""
        with self._lock:
            return list(file_input.recall(self._writer, signatures))

    def known_digest(self, signature: Signature) -> str | None:
        """The digest of the file that had exactly this signature; its content may be gone."""
        with self._lock:
            [row] = self._index.remembered([signature])
            return named(row[0]) if row else None

    def put_stream(self, chunks: Iterable[bytes]) -> Stored:
        """Store what an iterable of bytes gives, however long it is."""
        with self._lock:
            return self._writer.put_stream(chunks)

    def put_bytes(self, data: bytes) -> Stored:
        with self._lock:
            return self._writer.put_data(data)

    def put_all(self, contents: Iterable[bytes]) -> list[Stored]:
        """Many small contents at once, which is cheaper than one by one."""
        with self._lock:
            return self._writer.put_all(list(contents))

    @property
    def broken(self) -> bool:
        """A write has failed: this Store takes no more."""
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
        """Flush, and let go of the lease. After a failed write there is nothing to flush."""
        with self._lock:
            try:
                self._writer.close()
            finally:
                self._index.close()
                self._gate.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- asking

    def has(self, digest: str) -> bool:
        """Whether the content is stored, or will be by the next flush."""
        raw = digest_of(digest)
        if raw is None:
            return False
        with self._lock:
            return self._writer.held.get(raw) is True or self._index.has(raw)

    def size(self, digest: str) -> int:
        with self._lock:
            return sum(length for _, length in self._reader.parts(self._stored(digest)))

    def expand(self, prefix: str) -> str:
        """The one content whose name begins so; `blake3:` and at least 8 hexadecimal digits."""
        digits = prefix.removeprefix(PREFIX).lower()
        if len(digits) < 8 or len(digits) > 64 or set(digits) - set("0123456789abcdef"):
            raise UsageError(
                f"{prefix} is no content id", hint="blake3: and at least 8 hexadecimal digits"
            )
        low, high = bytes.fromhex(digits.ljust(64, "0")), bytes.fromhex(digits.ljust(64, "f"))
        with self._lock:
            found = {d for d, whole in self._writer.held.items() if whole and low <= d <= high}
            found.update(self._index.between(low, high, limit=2))
        if not found:
            raise NotFound(f"no content {prefix} is stored")
        if len(found) > 1:
            raise UsageError(f"{prefix} stands for several contents", hint="give more digits")
        return named(found.pop())

    # -- getting back

    def read(self, digest: str) -> Iterator[bytes]:
        """The bytes, verified as they come; Damaged at the latest when the last is given."""
        return content_reader.filled(self._reader.read(self._stored(digest)))

    def read_whole(self, digest: str, *, most: int = _MOST_IN_MEMORY) -> bytes:
        """All bytes at once. A record from elsewhere may name any content as a listing or a link,
        also one of many GiB of zeros: then this raises Oversized, and reads nothing."""
        if (size := self.size(digest)) > most:
            raise Oversized(
                f"{digest} has {size} bytes, where a record names at most {most}",
                hint="the record may be forged: clew list tells where it was made",
            )
        return b"".join(self.read(digest))

    def read_part(self, digest: str, start: int, stop: int) -> Iterator[bytes]:
        """The bytes from `start` to before `stop`, without reading what lies before them."""
        return content_reader.filled(self._reader.part(self._stored(digest), start, stop))

    def restore(
        self,
        digest: str,
        to: Path | bytes,
        *,
        mode: int | None = None,
        mtime: int | None = None,
        sync: bool = True,
    ) -> None:
        """Write the content to a file: whole and verified, or not at all; long zeros as holes."""
        buffers = self._reader.read(self._stored(digest))
        content_reader.restore(buffers, os.fsencode(to), mode=mode, mtime=mtime, sync=sync)

    def _stored(self, digest: str) -> bytes:
        """The digest as bytes, of a content that can be read: what waits is written first."""
        raw = digest_of(digest)
        if raw is None:
            raise NoContent(f"{digest} is no content id")
        with self._lock:
            if not self._index.has(raw):
                if raw not in self._writer.held:
                    raise NoContent(f"the bytes of {digest} are not stored")
                self._writer.flush()
        return raw

    # -- sharing

    @contextmanager
    def sending(self, there: There, progress: Progress) -> Iterator[Sending]:
        """What of this store is lacking elsewhere can be sent there."""
        from clew.store.remotes.upload import Sending

        made = Sending(self._index, self._reader, there, progress)
        try:
            yield made
        finally:
            made.close()

    def receiving(self, remote: Remote, progress: Progress) -> Receiving:
        """What this store lacks can be had from a remote; it is leased, and flushed as it comes."""
        from clew.store.remotes.download import Receiving

        return Receiving(remote, self._writer, self._reader, progress)

    def taking(self) -> Taking:
        """What this store lacks can be brought in packs; it is leased, and flushed as it comes."""
        from clew.store.remotes.pack_import import Taking

        return Taking(self._index, self._writer, self._reader)

    def giving(self) -> Giving:
        """What somebody lacks can be had from this store, in packs."""
        from clew.store.remotes.pack_export import Giving

        return Giving(self._index, self._reader)

    def hold(self, digests: Iterable[str]) -> list[bytes]:
        """Keep contents from a sweep until this Store is closed; NoContent when one is not here."""
        raw = [digest_of(digest) or b"" for digest in digests]
        with self._lock:
            if self.writable:
                self._writer.hold(raw)
            there = {digest for digest, whole in self._index.known(raw) if whole}
        for digest in raw:
            if digest not in there:
                raise NoContent(f"the bytes of {named(digest)} are not stored", hint="clew fsck")
        return raw

    # -- keeping

    def fsck(self) -> Report:
        """Hash every chunk and file again and compare the packs with the index."""
        with self._lock:
            self._writer.flush()
            from clew.store import consistency_check

            report = consistency_check.check(self.path, self._index, self._reader)
            if isinstance(self._damage, Damaged):
                report.problems.append(Problem(f"{self._damage}; rebuild it", "index.db"))
            return report

    def gc(self, live: Live, *, dry_run: bool = False) -> Reclaimed:
        """Remove every content that is neither in `live` nor held by a lease of running work.

        Give `live` as a function or a lazy iterator: it must be evaluated after the sweep has
        begun, since work that ends later has named its content and let go of its lease in the
        meantime. Trees in `live` keep what they list. Contents put by this very Store are held,
        too.
        """
        with self._lock:
            self._may_write()
            self._writer.flush()
            from clew.store import garbage_collector

            sweep = garbage_collector.Sweep(self.path, self._index, self._gate, self._reader)
            return sweep.run(live, dry_run=dry_run)

    def give_up(self, digest: str) -> None:
        """Forget a content that cannot be read, with its bad chunks: put again, it is stored anew.
        What else is made of these chunks could not be read either, and is forgotten, too."""
        with self._lock:
            self._may_write()
            self._writer.flush()
            if not self.has(digest):
                return
            raw = self._stored(digest)
            dead = {raw, *self._reader.bad(raw)}
            with self._gate.exclusive(), self._index.writing() as db:
                self._index.drop(db, packs=set(), digests=dead)
                self._index.drop_dangling(db)
            self._writer.held.clear()  # each is looked for again

    def lapse(self, lease: str) -> None:
        """What work of this name put is settled, and its workers are dead: drop their leases."""
        with self._lock:
            leases.drop_lapsed(self.path / "leases", lease, self._gate)

    def rebuild(self) -> int:
        """Make the index anew from the packs; how many there are. For when fsck says so."""
        with self._lock:
            if not isinstance(self._damage, Damaged):
                self._may_write()
                self._writer.flush()
                with self._gate.exclusive():
                    return open_store.fill(self._index, self.path / "packs", anew=True)
            with self._gate.exclusive():
                new = open_store.renew(self.path)
            self._index.close()
            self._index, self._damage = new, None
            self._use_index()
            return len(self._index.packs())

    def _may_write(self) -> None:
        refusal = self._refusal()
        if refusal is not None:
            raise refusal
