"""One command that runs others again, in a process of its own.

    python -m clew.server.command_worker DESCRIPTOR

The line that it reads says what to do. What it runs prints to this process's own output and
errors; what Clew has to say goes to the descriptor, as lines of JSON: {said} as it goes, then
{answer} or {error}. So whoever started it can pass each on, as it comes, and end it at any time.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from clew import settings
from clew.api.local.checkouts import commit_files
from clew.api.local.project import LocalProject, open_local_project
from clew.api.local.recreate import ClientFiles, Recreation
from clew.api.local.repeat import repeat
from clew.api.pipeline_artifacts import is_run
from clew.api.remote.checkouts import UploadedCheckout
from clew.api.remote.client_paths import ClientPaths
from clew.errors import ClewError
from clew.replay.sandbox.initial_files import Entry
from clew.store import Store

Say = Callable[[str], None]
Document = dict[str, Any]
Secrets = dict[str, str]
"""Values of the client for secrets that no record holds: of variables, and of files by path."""


class SentFile(msgspec.Struct):
    """A file of whoever asks, whose bytes have been sent."""

    digest: str
    size: int
    mode: int
    mtime: int


class Repeat(msgspec.Struct, tag="repeat"):
    """`clew repeat`."""

    id: str
    parameters: dict[int, str] = {}
    files: dict[str, SentFile] = {}
    """By word, those that the parameters name."""
    network: bool = False
    gpu: bool = False
    incremental: bool = False
    quiet: bool = True
    secrets: Secrets = {}

    def do(self, project: LocalProject, say: Say) -> Document:
        if is_run(self.id):
            return project.pipelines.repeat(self.id, say=say)
        return repeat(
            project,
            self.id,
            parameters=self.parameters,
            network=self.network,
            gpu=self.gpu,
            incremental=self.incremental,
            keep=None,
            quiet=self.quiet,
            say=say,
            bring=self._brought,
        )

    def _brought(self, word: str) -> Entry | None:
        found = self.files.get(word)
        if found is None:
            return None
        return Entry("file", found.mode, found.mtime, found.size, found.digest)


class Confirm(msgspec.Struct, tag="confirm"):
    """`clew diff --confirm`."""

    a: str
    b: str
    secrets: Secrets = {}

    def do(self, project: LocalProject, say: Say) -> Document:
        return project.diff(self.a, self.b, confirm=True)


class Commit(msgspec.Struct, tag="commit"):
    """`clew commit`: of a checkout in a folder elsewhere, whose files have been sent."""

    checkout: UploadedCheckout
    message: str | None = None
    network: bool = False
    gpu: bool = False
    quiet: bool = True
    secrets: Secrets = {}

    def do(self, project: LocalProject, say: Say) -> Document:
        return commit_files(
            project,
            *self.checkout.read(),
            message=self.message,
            network=self.network,
            gpu=self.gpu,
            quiet=self.quiet,
            say=say,
        )


class Recreate(msgspec.Struct, tag="recreate"):
    """`clew recreate`, but for putting the file where it belongs."""

    target: str
    asker: ClientPaths
    brought: dict[str, str] = {}
    """By digest, files that have been sent, and where they lie."""
    network: bool = False
    gpu: bool = False
    secrets: Secrets = {}

    def do(self, project: LocalProject, say: Say) -> Document:
        elsewhere = ClientFiles(self.asker.here(), self.brought)
        with Store(project.directory.store) as store:
            way = Recreation(
                project,
                store,
                self.target,
                network=self.network,
                gpu=self.gpu,
                elsewhere=elsewhere,
            )
            return way.walk(say)


Command = Repeat | Confirm | Commit | Recreate


def main(descriptor: int) -> None:
    os.set_inheritable(descriptor, False)
    with open(descriptor, "w", buffering=1) as out:

        def tell(**words: Any) -> None:
            out.write(json.dumps(words) + "\n")

        try:
            asked = json.loads(sys.stdin.buffer.readline())
            task: Command = msgspec.convert(asked, type=Command, str_keys=True)
            with open_local_project(settings.load()) as project:
                project.secrets = project.secrets.only_given(task.secrets)
                tell(answer=task.do(project, lambda text: tell(said=text)))
        except ClewError as error:
            tell(**error.as_json())
        except Exception as error:
            tell(**ClewError(f"{type(error).__name__}: {error}").as_json())


if __name__ == "__main__":
    main(int(sys.argv[1]))
