"""Run an external program to its end: its output, or an error that contains it."""

import subprocess

from tools.cluster.progress import ClusterError


def run(*words: str, given: str = "", environment: dict[str, str] | None = None) -> str:
    ran = subprocess.run(
        words, input=given, env=environment, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        output = f"{ran.stdout}{ran.stderr}".strip()
        raise ClusterError(f"{' '.join(words)} failed ({ran.returncode}):\n{output}")
    return ran.stdout
