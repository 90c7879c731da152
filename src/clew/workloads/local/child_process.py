"""One child process: started, observed without blocking, and stopped with all its descendants."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from clew.workloads.local.process_log import ProcessLog

_RUN_CHILD = Path(__file__).parent / "launchers" / "run_child.py"
_READ_BYTES = 64 << 10
_LAST_BYTES = 4 << 10
"""Of what it printed, kept to explain a crash."""


class ChildProcess:
    """Start it in the thread that lives as long as it may run: it ends with that thread."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: Path,
        log: ProcessLog,
    ) -> None:
        self._log = log
        self.last_output = b""
        self.output, write_end = os.pipe()
        os.set_blocking(self.output, False)
        wrapper = [sys.executable, "-I", "-S", str(_RUN_CHILD), str(os.getpid())]
        try:
            self._process = subprocess.Popen(
                [*wrapper, *command],
                stdin=subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                env=dict(environment),
                cwd=directory,
                start_new_session=True,  # so that one signal reaches its descendants
            )
        except OSError:
            os.close(self.output)
            raise
        finally:
            os.close(write_end)
        self.pid = self._process.pid
        self.handle = os.pidfd_open(self.pid)
        """Becomes readable when the process ends."""

    def read_output(self) -> bool:
        """Move what it printed to the log; false at the end."""
        while True:
            try:
                data = os.read(self.output, _READ_BYTES)
            except BlockingIOError:
                return True
            if not data:
                return False
            self.last_output = (self.last_output + data)[-_LAST_BYTES:]
            self._log.append(data)

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Ask it to end; it ends its own children."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        """End it and its descendants now."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """After its end: end what it left behind, and release its descriptors."""
        self.kill()
        self._process.wait()
        self.read_output()
        os.close(self.output)
        os.close(self.handle)
