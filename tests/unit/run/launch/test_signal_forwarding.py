"""Signals to Clew are the command's, and the command finds its mask as the caller left it."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from clew.run.launch import signal_forwarding, tracer_process


def test_a_signal_before_the_command_is_known_is_passed_on_when_it_is() -> None:
    # In a process of its own: a test runner's other threads would take the signal.
    program = """
import os, signal, subprocess
from clew.run.launch import signal_forwarding
child = subprocess.Popen(["sleep", "1000"])
known = []
try:
    with signal_forwarding.forward_signals(lambda: known[0] if known else None):
        os.kill(os.getpid(), signal.SIGTERM)
        assert child.poll() is None
        known.append(child.pid)
        assert child.wait(timeout=30) == -signal.SIGTERM
finally:
    child.kill()
    child.wait()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_what_was_blocked_before_is_told_and_comes_back() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    try:
        with signal_forwarding.forward_signals(lambda: None) as blocked:
            assert blocked == {signal.SIGUSR2}
            assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == {signal.SIGUSR2}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_beside_the_main_thread_nothing_is_taken() -> None:
    found: list[set[int]] = []

    def run() -> None:
        with signal_forwarding.forward_signals(lambda: None) as blocked:
            found.append(blocked)
            found.append(set(signal.pthread_sigmask(signal.SIG_BLOCK, ())))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [set(), set()]


def test_a_process_is_started_with_the_given_mask_and_descriptors(tmp_path: Path) -> None:
    out = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT, 0o600)
    read, notify = os.pipe()
    program = f"""
import os
print(open("/proc/self/status").read(), os.environ, flush=True)
os.write({notify}, b"told")
os._exit(7)
"""
    pid = tracer_process.start(
        [sys.executable, "-c", program],
        {"ONLY": "this"},
        descriptors=(0, out, 2),
        handed=(notify,),
        blocked={signal.SIGUSR1},
    )
    os.close(notify)
    os.close(out)
    assert os.read(read, 100) == b"told"
    os.close(read)
    assert tracer_process.wait(pid) == 7
    said = (tmp_path / "out").read_bytes()
    assert b"SigBlk:\t0000000000000200" in said
    assert b"'ONLY': 'this'" in said


def test_the_end_by_a_signal_is_told() -> None:
    read, notify = os.pipe()
    pid = tracer_process.start(
        ["/bin/sleep", "1000"], {}, descriptors=(0, 1, 2), handed=(notify,), blocked=()
    )
    os.close(notify)
    os.kill(pid, signal.SIGKILL)
    assert tracer_process.wait(pid) == -signal.SIGKILL
    os.close(read)
