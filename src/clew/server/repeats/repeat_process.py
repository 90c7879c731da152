"""Perform one claimed repeat in a process of its own, and store how it goes and ends.

While the process works, this thread reads what it prints, renews the lease, and ends the process if
a user cancels the repeat, the server stops, or another server has claimed the repeat.
"""

import json
import logging
import os
import selectors
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from clew.api.remote.messages import RepeatCommand, encode_message
from clew.documents.executions.repeats import RepeatRequest
from clew.errors import ClewError, NoDatabase
from clew.pipelines.runs.lease_holder import lease_end
from clew.prov.queries.repeat_results import shorten_result
from clew.server.catalogue import repeat_requests
from clew.server.repeats.output_tail import OutputTail
from clew.server.repeats.rerun_process import worker_command, worker_options
from clew.server.server_state import Service

_LOG = logging.getLogger("clew.server.repeats")
_READ_BYTES = 1 << 16
_MAX_MESSAGE_BYTES = 64 << 20
_RENEW_SECONDS = 1.0
_WAIT_SECONDS = 0.2
_KILL_SECONDS = 3.0
"""How long the process may take to end."""
_RETRY_SECONDS = 2.0
"""Pause while the database does not answer."""


@dataclass
class ProcessAnswer:
    """The answer of the process; empty if it ended before it had one."""

    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    canceled: bool = False
    lost: bool = False
    """Another server has claimed the repeat."""


class RepeatProcess:
    """One repeat, performed by a thread and the process that it starts."""

    def __init__(
        self, service: Service, request: RepeatRequest, holder: str, ending: threading.Event
    ) -> None:
        self._service = service
        self._request = request
        self._holder = holder
        self._ending = ending
        self._output = OutputTail()
        self._outcome = ProcessAnswer()
        self._message = b""
        self._next_renewal = 0.0
        self.thread = threading.Thread(target=self._perform, name="repeat")

    def _perform(self) -> None:
        try:
            self._run_process()
        except Exception as error:
            _LOG.exception("repeat failed", extra={"repeat": self._request.id})
            self._outcome.error = {"message": f"{type(error).__name__}: {error}", "hint": ""}
        self._store_outcome()

    # -- the process

    def _run_process(self) -> None:
        read_fd, write_fd = os.pipe()
        with open(read_fd, "rb", buffering=0) as messages:
            try:
                process = subprocess.Popen(
                    worker_command(write_fd),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    bufsize=0,
                    **worker_options(self._service, write_fd),
                )
            finally:
                os.close(write_fd)
            with process:
                assert process.stdin is not None
                assert process.stdout is not None
                try:
                    with suppress(BrokenPipeError):
                        process.stdin.write(self._encode_command())
                    self._follow(process, messages, process.stdout)
                finally:
                    _end(process)

    def _encode_command(self) -> bytes:
        options = self._request.options
        command = RepeatCommand(
            id=self._request.target
            if self._request.target[:1] == "r"
            else self._request.target_uid,
            parameters={int(position): word for position, word in options.parameters.items()},
            incremental=options.incremental,
            network=options.network,
            gpu=options.gpu,
            quiet=False,
            request=self._request.id,
        )
        return encode_message(command) + b"\n"

    def _follow(
        self, process: subprocess.Popen[bytes], messages: IO[bytes], output: IO[bytes]
    ) -> None:
        """Read until both streams end, or the process must."""
        with selectors.DefaultSelector() as selector:
            selector.register(messages, selectors.EVENT_READ)
            selector.register(output, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in selector.select(_WAIT_SECONDS):
                    data = os.read(key.fd, _READ_BYTES)
                    if not data:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is messages:
                        self._read_messages(data)
                    else:
                        self._output.add(data)
                if self._must_end():
                    return

    def _read_messages(self, data: bytes) -> None:
        *lines, self._message = (self._message + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "said" in message:
                self._output.add_message(str(message["said"]))
            elif "answer" in message:
                self._outcome.result = message["answer"]
            elif "error" in message:
                self._outcome.error = message["error"]
        if len(self._message) > _MAX_MESSAGE_BYTES:
            raise ValueError(f"the result is longer than {_MAX_MESSAGE_BYTES} bytes")

    def _must_end(self) -> bool:
        """Renew the lease if it is time. Whether the process must end before it has an answer."""
        if time.monotonic() >= self._next_renewal:
            self._next_renewal = time.monotonic() + _RENEW_SECONDS
            try:
                with self._service.graph() as graph:
                    canceled = repeat_requests.renew_lease(
                        graph,
                        self._request.id,
                        self._holder,
                        lease=lease_end(),
                        output=self._output.text(),
                    )
            except ClewError as error:  # without the database no other server can claim it, either
                _LOG.error("cannot renew the lease of a repeat: %s", error.message)
                canceled = False
            self._outcome.lost = canceled is None
            self._outcome.canceled = bool(canceled)
        return self._outcome.lost or self._outcome.canceled or self._ending.is_set()

    # -- the end

    def _store_outcome(self) -> None:
        """Store it once the database answers; a server that stops leaves the repeat to the next."""
        extra = {"repeat": self._request.id, "target": self._request.target}
        while not self._outcome.lost:
            try:
                with self._service.graph() as graph:
                    _LOG.info("repeat %s", self._store(graph), extra=extra)
                return
            except ClewError as error:
                _LOG.error("cannot store the end of a repeat: %s", error.message, extra=extra)
                if self._ending.wait(_RETRY_SECONDS):
                    return

    def _store(self, graph: Any) -> str:
        request, holder, output = self._request.id, self._holder, self._output.text()
        outcome = self._outcome
        if outcome.result is not None:
            result = shorten_result(outcome.result)
            repeat_requests.finish_repeat(
                graph, request, holder, state="done", output=output, result=result
            )
            return "done"
        if outcome.canceled:
            repeat_requests.finish_repeat(graph, request, holder, state="canceled", output=output)
            return "canceled"
        error = outcome.error
        if error is not None and error.get("code") != NoDatabase.code:
            text = ": ".join(part for part in (error["message"], error.get("hint")) if part)
            repeat_requests.finish_repeat(
                graph, request, holder, state="failed", output=output, error=text
            )
            return "failed"
        blame = error is None and not self._ending.is_set()
        repeat_requests.release_repeat(graph, request, holder, blame=blame)
        return "interrupted"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it executes, unless it has ended."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_KILL_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
