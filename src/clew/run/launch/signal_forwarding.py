"""Forward signals that were sent to Clew alone; those of the terminal reach the command anyway."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_FROM_TERMINAL = 0x80  # si_code SI_KERNEL: the whole process group got it


@contextmanager
def forward_signals(root: Callable[[], int | None]) -> Iterator[set[int]]:
    """Forward signals to the command during the body: the command decides what they mean. Yields
    the signals that the caller had blocked, so that the command starts with the same mask."""
    if threading.current_thread() is not threading.main_thread():
        yield set(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    over = threading.Event()
    thread = threading.Thread(target=_forward, args=(root, over), daemon=True)
    thread.start()
    try:
        yield set(before)
    finally:
        over.set()
        if thread.ident is not None and thread.is_alive():
            signal.pthread_kill(thread.ident, _FORWARDED[-1])  # only to end its wait
        thread.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _forward(root: Callable[[], int | None], over: threading.Event) -> None:
    waiting: list[int] = []  # the command may not have begun yet
    while True:
        got = signal.sigtimedwait(_FORWARDED, 0.05) if waiting else signal.sigwaitinfo(_FORWARDED)
        if over.is_set():
            return
        if got is not None and got.si_code != _FROM_TERMINAL:
            waiting.append(got.si_signo)
        pid = root()
        if pid is not None:
            for number in waiting:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            waiting.clear()
