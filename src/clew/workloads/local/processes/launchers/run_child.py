"""Run a program, and end it with everything that it started.

    run_child.py PARENT PROGRAM ARGUMENTS…

- SIGTERM ends the program in order, and after some seconds by force; SIGQUIT ends it by force.
- The kernel sends SIGTERM when the thread that started this process ends, even if it was killed
  (PR_SET_PDEATHSIG).
- When the program has ended, its descendants are killed: they become children of this process when
  their own parents end (PR_SET_CHILD_SUBREAPER), so none is missed, in whatever session it is.

This is a program of its own, because Python must not run code between fork and exec in a process
that has threads. It exits as the program did.
"""

import ctypes
import os
import signal
import sys
import time

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36
_GRACE_SECONDS = 6.0
_CANNOT_EXECUTE = 127


def main() -> None:
    parent, command = int(sys.argv[1]), sys.argv[2:]
    prctl = ctypes.CDLL(None).prctl
    prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    prctl(_SET_CHILD_SUBREAPER, 1)
    signals = {signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    if os.getppid() != parent:  # it ended before the first call
        sys.exit(1)
    own = os.getpid()
    program = os.fork()
    if program == 0:
        prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        if os.getppid() == own:
            execute(command)
        os._exit(_CANNOT_EXECUTE)
    status = wait(program, signals)
    kill_descendants()
    exit_like(status)


def execute(command: list[str]) -> None:
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())


def wait(program: int, signals: set[signal.Signals]) -> int:
    """Wait until the program ends, or must be killed; returns its wait status."""
    deadline = None
    while True:
        if deadline is None:
            number = signal.sigwait(signals)
        else:
            info = signal.sigtimedwait(signals, max(0.0, deadline - time.monotonic()))
            number = signal.SIGQUIT if info is None else info.si_signo
        if number == signal.SIGTERM and deadline is None:
            deadline = time.monotonic() + _GRACE_SECONDS
            os.kill(program, signal.SIGTERM)
        elif number == signal.SIGQUIT:
            os.kill(program, signal.SIGKILL)
            return os.waitpid(program, 0)[1]
        elif number == signal.SIGCHLD:
            status = reap(program)
            if status is not None:
                return status


def reap(program: int) -> int | None:
    """Reap children that have ended; returns the wait status of the program if it is among them."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == program:
            return status
        if pid == 0:
            return None


def kill_descendants() -> None:
    """Kill children until there are none: those of a killed one become children of this process."""
    while True:
        for child in find_children():
            try:
                os.kill(child, signal.SIGKILL)
            except OSError:  # it has another user's rights, or ended
                continue
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.01)


def find_children() -> list[int]:
    own = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue
            if parent == own:
                found.append(int(name))
    return found


def exit_like(status: int) -> None:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})  # no other, which may be pending
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
