"""Run other people's programs to their end: what they say, or why they failed."""

from __future__ import annotations

import subprocess

from tools.cluster.saying import Failed


def run(*words: str, given: str = "", environment: dict[str, str] | None = None) -> str:
    ran = subprocess.run(
        words, input=given, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        said = f"{ran.stdout}{ran.stderr}".strip()
        raise Failed(f"{' '.join(words)} failed ({ran.returncode}):\n{said}")
    return ran.stdout
