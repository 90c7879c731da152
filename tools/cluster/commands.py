"""Run commands, and report each step with its duration: a start without output would look stuck."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class ClusterError(Exception):
    """An error that the user can act on; the message says what, and where to look."""


def report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """One line per step, written when it is done."""
    began = time.monotonic()
    yield
    report(f"{time.monotonic() - began:6.1f} s  {what}")


def run(*words: str, given: str = "", environment: dict[str, str] | None = None) -> str:
    ran = subprocess.run(
        words, input=given, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        output = f"{ran.stdout}{ran.stderr}".strip()
        raise ClusterError(f"{' '.join(words)} failed ({ran.returncode}):\n{output}")
    return ran.stdout
