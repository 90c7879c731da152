"""Answering the tracer, which asks before it lets a program start whether that need be.

The question comes with copies of the descriptors that the program would write to. The answer is
"run it", or a status to end with: then what the program would have done was done. Who decides is
somebody else (`clew.replay.reuse.incremental`); this is the thread that listens.
"""

from __future__ import annotations

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
from clew.witness.syscalls.content_capture import ContentCapture, FileState
from clew.witness.syscalls.reused_subtree import ReusedSubtree
from clew.witness.syscalls.trace_format import Opening, Question

_ANSWER = struct.Struct("=IIQ")
_decode = msgspec.msgpack.Decoder(Question).decode


@dataclass(frozen=True)
class RunContext:
    """What whoever decides has to know of the run."""

    files: Confined
    """Its files, as its paths name them."""
    given: Mapping[FileState, str]
    streams: Mapping[bytes, str]
    redactor: Redactor
    contents: ContentCapture


class Decider(Protocol):
    """Knows what need not run."""

    def begin(self, context: RunContext) -> None: ...

    def decide(self, question: Question, copies: Mapping[int, int]) -> tuple[int, int] | None:
        """The status to end with and the token of what was done instead; None: run it. `copies`:
        the descriptors it would write to, as ours, by its own numbers."""

    def close(self) -> None:
        """Nothing more will be asked."""

    @property
    def reused_subtrees(self) -> Mapping[int, ReusedSubtree]:
        """What was done instead, by token."""


class DecisionServer:
    """Answers until the tracer is gone."""

    def __init__(self, decider: Decider) -> None:
        self._decider = decider
        self._ours, self._theirs = socket.socketpair()
        self.failure: Exception | None = None
        """Why nothing was answered any more: what was half done then makes the run worthless."""
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def descriptor(self) -> int:
        """For the tracer."""
        return self._theirs.fileno()

    def start(self, context: RunContext) -> None:
        self._theirs.close()
        self._decider.begin(context)
        self._thread.start()

    def finish(self) -> None:
        """The tracer has ended."""
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
            question = _decode(self._exactly(int.from_bytes(head, "little")))
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
        """The length of a question, and the descriptors that came with it."""
        with contextlib.suppress(ConnectionError):
            head, copies, _, _ = socket.recv_fds(self._ours, 4, 16)
            while head and len(head) < 4:
                head += self._exactly(4 - len(head))
            return head or None, list(copies)
        return None, []

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._ours.recv(size - len(data))
            if not more:
                raise ConnectionError("the tracer is gone")
            data += more
        return bytes(data)


def _passed_descriptors(question: Question) -> list[int]:
    """The numbers of the descriptors that came along."""

    def comes(opening: Opening) -> bool:
        return bool(opening.way & 2) or opening.at >= 0

    return [opening.fd for opening in question.openings if comes(opening)][: question.sent]
