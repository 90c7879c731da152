"""One child process: started, observed without blocking, and stopped with all its descendants."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from clew.workloads.local.processes.process_log import ProcessLog

RUN_CHILD = Path(__file__).parent / "launchers" / "run_child.py"
"""Runs a program that ends, with all its descendants, when the thread that started it ends."""
_READ_BYTES = 64 << 10
_MAX_READS = 16
"""Reads per call, so that one noisy process does not delay the others."""
_LAST_BYTES = 4 << 10
"""Bytes at the end of the output, kept to explain a crash."""
_WAIT_SECONDS = 1.0


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
        wrapper = [sys.executable, "-I", "-S", str(RUN_CHILD), str(os.getpid())]
        try:
            self._process = subprocess.Popen(
                [*wrapper, *command],
                stdin=subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                env=dict(environment),
                cwd=directory,
                start_new_session=True,  # Ctrl-C in the server's terminal is for the server
            )
        except OSError:
            os.close(self.output)
            raise
        finally:
            os.close(write_end)
        self.pid = self._process.pid
        """The process that looks after the program and its descendants: see `run_child`."""
        self.handle = os.pidfd_open(self.pid)
        """Becomes readable when the process ends."""

    def read_output(self) -> bool:
        """Move what it printed to the log; false at the end."""
        for _ in range(_MAX_READS):
            try:
                data = os.read(self.output, _READ_BYTES)
            except BlockingIOError:
                return True
            if not data:
                return False
            self.last_output = (self.last_output + data)[-_LAST_BYTES:]
            with suppress(OSError):  # a full disk must not end what it cannot log
                self._log.append(data)
        return True

    def poll(self) -> int | None:
        """Its exit status, negative for a signal; None while it runs. Its id stays its own until
        `close`."""
        found = os.waitid(os.P_PIDFD, self.handle, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def terminate(self) -> None:
        """Ask it to end; it is killed if that takes too long."""
        signal.pidfd_send_signal(self.handle, signal.SIGTERM)

    def kill(self) -> None:
        """End it and its descendants now."""
        signal.pidfd_send_signal(self.handle, signal.SIGQUIT)

    def close(self) -> None:
        """After its end, or to give it up: end what is left of it, and release its descriptors."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # some are left only if `run_child` was killed
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_WAIT_SECONDS)
        self.read_output()
        os.close(self.output)
        os.close(self.handle)
