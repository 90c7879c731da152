"""The container runtime of this machine, if one answers, and what it is called with.

Only runtimes whose containers are a daemon's processes are used: what is witnessed is the client,
and a container that were its child would be seen as if the image's files were the machine's.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache

from msgspec import Struct

_CLIENTS = (("docker",), ("podman", "--remote"), ("nerdctl",))
_TIMEOUT = 20.0
"""Seconds that a client has to answer."""


class ContainerRuntime(Struct, frozen=True):
    """A client of the kind of docker's."""

    client: tuple[str, ...]

    def digest(self, image: str) -> str | None:
        """What an image that is here consists of; None where it is not."""
        said = _run((*self.client, "image", "inspect", "--format", "{{.Id}}", image))
        return said.strip() if said else None

    def command(
        self,
        image: str,
        *,
        name: str,
        command: Sequence[str],
        arguments: Sequence[str],
        variables: Iterable[str],
        mounts: Iterable[tuple[str, str, bool]],
    ) -> list[str]:
        """What runs words in an image. The variables' values are those of the client; a mount is
        what is there, where it is seen, and whether it may be written."""
        words = [*self.client, "run", "--rm", "--name", name, "--network", "host"]
        for variable in variables:
            words += ["--env", variable]
        for source, target, writable in mounts:
            only = "" if writable else ",readonly"
            words += ["--mount", f"type=bind,source={source},target={target}{only}"]
        if command:
            words += ["--entrypoint", command[0]]
        return [*words, image, *command[1:], *arguments]

    def remove(self, name: str) -> None:
        """End a container, if it is still there."""
        _run((*self.client, "rm", "--force", name))


@cache
def find_runtime() -> ContainerRuntime | None:
    """The first that is here and answers."""
    for name, *words in _CLIENTS:
        found = shutil.which(name)
        if found and _run((found, *words, "info")) is not None:
            return ContainerRuntime((found, *words))
    return None


def _run(words: Sequence[str]) -> str | None:
    with suppress(OSError, subprocess.TimeoutExpired):
        ran = subprocess.run(
            words,
            check=False,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT,
        )
        if not ran.returncode:
            return ran.stdout
    return None
