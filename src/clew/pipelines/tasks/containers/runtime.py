"""The container runtime of this machine, and its command lines.

Only runtimes with a daemon are used. The tracer follows the client; if the container were its child
process, the image's files would be recorded as files of the machine.
"""

import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache

from msgspec import Struct

_CLIENTS = (("docker",), ("podman", "--remote"), ("nerdctl",))
_TIMEOUT = 20.0
"""Seconds until a client that does not respond is given up."""


class ContainerRuntime(Struct, frozen=True):
    """A client with the command line of docker."""

    client: tuple[str, ...]

    def digest(self, image: str) -> str | None:
        """The digest of a local image; None if there is none."""
        return next(iter(self.digests(image)), None)

    def digests(self, image: str) -> tuple[str, ...]:
        """The digests by which a local image is known: its own, and those of its manifest in
        registries. Empty if there is none."""
        form = "{{.Id}} {{range .RepoDigests}}{{.}} {{end}}"
        output = _run((*self.client, "image", "inspect", "--format", form, image)) or ""
        found = [f"sha256:{word.rpartition('sha256:')[2]}" for word in output.split()]
        return tuple(dict.fromkeys(found))

    def command(
        self,
        image: str,
        *,
        name: str,
        command: Sequence[str],
        arguments: Sequence[str],
        variables: Iterable[str],
        mounts: Iterable[tuple[str, str, bool]],
        network: str = "host",
        options: Iterable[str] = (),
    ) -> list[str]:
        """The command line of `run`. The values of variables are those of the client. A mount is a
        path, its path in the container, and whether it is writable. `options`: more of `run`."""
        words = [*self.client, "run", "--rm", "--name", name, "--network", network, *options]
        for variable in variables:
            words += ["--env", variable]
        for source, target, writable in mounts:
            only = "" if writable else ",readonly"
            words += ["--mount", f"type=bind,source={source},target={target}{only}"]
        if command:
            words += ["--entrypoint", command[0]]
        return [*words, image, *command[1:], *arguments]

    def names(self, prefix: str) -> list[str]:
        """The names of containers that begin with `prefix`, running or not."""
        words = ("ps", "--all", "--filter", f"name={prefix}", "--format", "{{.Names}}")
        listed = _run((*self.client, *words)) or ""
        return [name for name in listed.split() if name.startswith(prefix)]

    def remove(self, name: str) -> None:
        """Kill and remove a container, if it still exists."""
        _run((*self.client, "rm", "--force", name))


@cache
def find_runtime() -> ContainerRuntime | None:
    """The first that is installed and responds."""
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
