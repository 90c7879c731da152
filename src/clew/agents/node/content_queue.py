"""Read the contents that the fold asks for, and store those that the policy names.

Small files are read at once, before they can change; large ones one after the other in a thread.
A file that changes before it was read has a newer version; the older one stays without content.
"""

import logging
import queue
import threading
from collections import Counter
from dataclasses import dataclass

import msgspec

from clew.agents.node.content_reader import OpenContent
from clew.agents.node.kernel.volume_mount import VolumeMount
from clew.agents.spool import Spool
from clew.errors import ClewError
from clew.witness.volumes.accesses import ContentAnswer, ContentRequest

_LOG = logging.getLogger("clew.agents")
SMALL_BYTES = 1 << 20
MAX_WAITING = 1000
"""Large files that wait to be read. Each is open, and a Pod can make sparse ones for no cost."""
_STOP = None


@dataclass
class SmallContent:
    """What reading at once gave."""

    answer: ContentAnswer | None = None
    """None: it is queued, or the file is not as it was any more."""
    data: bytes | None = None
    """The bytes, if they are to be stored."""
    queued: bool = False
    too_many: bool = False
    """It is large, and too many others wait."""


@dataclass
class LargeContent:
    """A large file that was read."""

    request: ContentRequest
    answer: ContentAnswer | None
    done: threading.Event
    """To be set when the events that name it are in the spool: until then it is kept there."""


class ContentQueue:
    def __init__(self, spool: Spool, counts: Counter[str]) -> None:
        self._spool = spool
        self._counts = counts
        self._waiting: queue.Queue[tuple[OpenContent, ContentRequest, bool] | None] = queue.Queue()
        self._answers: queue.SimpleQueue[LargeContent] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="clew-contents", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def read_small(
        self, mount: VolumeMount, request: ContentRequest, *, store: bool
    ) -> SmallContent:
        """Read a small file, or queue a large one."""
        try:
            content = OpenContent(mount, request)
        except OSError:
            self._counts["contents_gone"] += 1
            return SmallContent()
        if content.size > SMALL_BYTES and self._waiting.qsize() >= MAX_WAITING:
            content.close()
            self._counts["contents_skipped"] += 1
            return SmallContent(too_many=True)
        if content.size > SMALL_BYTES:
            self._waiting.put((content, request, store))
            return SmallContent(queued=True)
        try:
            data = b"".join(content.blocks())
        except OSError:
            self._counts["contents_gone"] += 1
            return SmallContent()
        finally:
            content.close()
        if content.answer is None:
            self._counts["contents_changed"] += 1
            return SmallContent()
        self._counts["hashed_bytes"] += len(data)
        answer = msgspec.structs.replace(content.answer, stored=store)
        return SmallContent(answer, data if store else None)

    def finished(self) -> list[LargeContent]:
        """The large files that were read since the last call."""
        found = []
        while not self._answers.empty():
            found.append(self._answers.get())
        return found

    def stop(self) -> None:
        """Read what is waiting, then end. Take what is `finished` until it is not `busy`."""
        self._waiting.put(_STOP)

    @property
    def busy(self) -> bool:
        return self._thread.is_alive() or not self._answers.empty()

    def _run(self) -> None:
        while (taken := self._waiting.get()) is not _STOP:
            content, request, store = taken
            try:
                self._read(content, request, store=store)
            except (OSError, ClewError) as error:
                _LOG.warning("the content of %r was not read: %s", request.path[:200], error)
                self._answer(request, None)
            finally:
                content.close()

    def _read(self, content: OpenContent, request: ContentRequest, *, store: bool) -> None:
        if not store:
            for _ in content.blocks():
                pass
            self._answer(request, content.answer)
            return
        with self._spool.storing() as opened:
            opened.put_stream(content.blocks())
            opened.flush()
            answer = content.answer
            if answer is not None:
                answer = msgspec.structs.replace(answer, stored=True)
            self._answer(request, answer).wait()

    def _answer(self, request: ContentRequest, answer: ContentAnswer | None) -> threading.Event:
        self._counts["contents_changed"] += answer is None
        self._counts["hashed_bytes"] += answer.size if answer else 0
        done = threading.Event()
        self._answers.put(LargeContent(request, answer, done))
        return done
