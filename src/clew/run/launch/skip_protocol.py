"""Answer the tracer when it asks whether a program must run.

The question carries copies of the descriptors that the program would write to. The answer is "run
it", or an exit status: then the effects of the program were already restored. This module is the
protocol and its thread; `clew.replay.reuse.incremental` decides.
"""

import contextlib
import os
import socket
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from clew.confined_files import Confined
from clew.redaction import Redactor
from clew.witness.syscalls.content_capture import ContentCapture
from clew.witness.syscalls.reused_subtree import ReusedSubtree
from clew.witness.syscalls.trace_format import FileState, Opening, Question

_ANSWER = struct.Struct("=IIQ")
_decode = msgspec.msgpack.Decoder(Question).decode


@dataclass(frozen=True)
class RunContext:
    """The facts about the running command that the decider needs."""

    files: Confined
    """The command's files, by its own paths."""
    provided: Mapping[FileState, str]
    """The content of files that were put there for the command."""
    streams: Mapping[bytes, str]
    redactor: Redactor
    contents: ContentCapture


class Decider(Protocol):
    """Decides which programs can be skipped."""

    def begin(self, context: RunContext) -> None: ...

    def decide(self, question: Question, copies: Mapping[int, int]) -> tuple[int, int] | None:
        """The exit status and the token of the reused subtree; None to run the program. `copies`
        maps the program's descriptors, which it would write to, to ours."""

    def close(self) -> None:
        """No more questions will come."""

    @property
    def reused_subtrees(self) -> Mapping[int, ReusedSubtree]:
        """The reused subtrees, by token."""


class DecisionServer:
    """A thread that answers until the tracer ends."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._ours, self._theirs = socket.socketpair()
        self.failure: Exception | None = None
        """Why it stopped. The execution is then not recorded: effects may be half restored."""
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def descriptor(self) -> int:
        """The tracer's end of the socket."""
        return self._theirs.fileno()

    def start(self, context: RunContext) -> None:
        self._theirs.close()
        self._decider.begin(context)
        self._thread.start()

    def finish(self) -> None:
        """Wait for the thread, after the tracer has ended."""
        self._theirs.close()
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._answer():
                pass
        except Exception as error:
            self.failure = error
        finally:
            self._decider.close()
            self._ours.close()

    def _answer(self) -> bool:
        head, copies = self._receive()
        if head is None:
            return False
        try:
            question = _decode(self._receive_exactly(int.from_bytes(head, "little")))
            answer = self._decider.decide(
                question, dict(zip(_passed_descriptors(question), copies, strict=True))
            )
        finally:
            for copy in copies:
                os.close(copy)
        status, token = answer or (0, 0)
        self._ours.sendall(_ANSWER.pack(answer is not None, status, token))
        return True

    def _receive(self) -> tuple[bytes | None, list[int]]:
        """The length of the next question, and the descriptors sent with it."""
        with contextlib.suppress(ConnectionError):
            head, copies, _, _ = socket.recv_fds(self._ours, 4, 16)
            while head and len(head) < 4:
                head += self._receive_exactly(4 - len(head))
            return head or None, list(copies)
        return None, []

    def _receive_exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._ours.recv(size - len(data))
            if not more:
                raise ConnectionError("the tracer is gone")
            data += more
        return bytes(data)


def _passed_descriptors(question: Question) -> list[int]:
    """The program's numbers of the descriptors that were sent."""

    def is_sent(opening: Opening) -> bool:
        return bool(opening.way & 2) or opening.at >= 0

    return [opening.fd for opening in question.openings if is_sent(opening)][: question.sent]
