"""Run a command under the tracer only, without recording it."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clew.run.launch.pins import UNPINNED, Pins
from clew.witness import tracer_binary

PINNED = Pins(clock=10**18 + 250_000_000, random="00112233445566778899aabbccddeeff")
"""A Sunday in 2001, so that no real clock says the same."""


def run_traced(
    folder: Path, command: Sequence[str | Path], pins: Pins = UNPINNED, **more: Any
) -> str:
    """Return what the command prints; it must succeed."""
    words = tracer_binary.tracer_command(
        [os.fspath(word) for word in command],
        tracer=os.fspath(tracer_binary.TRACER),
        library=os.fspath(tracer_binary.LIBRARY),
        trace=os.fspath(folder / "trace"),
        save_to=None,
        notify=-1,
        exclude=(),
        pin_clock=pins.clock,
        pin_random=pins.random,
        serial=pins.serial,
    )
    ran = subprocess.run(
        words,
        cwd=folder,
        stdout=subprocess.PIPE,
        timeout=120,
        **{"stdin": subprocess.DEVNULL, **more},
    )
    assert ran.returncode == 0
    return ran.stdout.decode(errors="replace")
