"""A process that does one command that executes recorded programs again, such as `clew repeat`.

    python -m clew.server.rerun_worker DESCRIPTOR

It reads the command as one line of JSON from its input. The programs it executes print to its own
stdout and stderr. Clew's messages go to the file descriptor as lines of JSON: any number of {said},
then {answer} or {error}. So the server can forward both as they come, and can kill the process at
any time. The end of its input means that the server is gone: the process ends at once, and with it
what it executes.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from clew import settings
from clew.api.local.checkouts import commit_files
from clew.api.local.project import LocalProject, open_local_project
from clew.api.local.recreate import Recreation
from clew.api.local.recreation_sources import ClientFiles
from clew.api.local.repeat import repeat
from clew.api.pipeline_artifacts import is_run
from clew.api.remote.caller_paths import ClientPaths
from clew.api.remote.checkouts import UploadedCheckout
from clew.documents.document import Document
from clew.documents.ids import Digest, TaskId, Uid
from clew.errors import ClewError
from clew.replay.sandbox.initial_files import Entry
from clew.server.catalogue.repeat_requests import uid_of_task
from clew.store import Store

Say = Callable[[str], None]
Secrets = dict[str, str]
"""Secrets from the client, which no record contains: by name of variable or path of file."""


class SentFile(msgspec.Struct):
    """A file of the client whose content is already in the store."""

    digest: Digest
    size: int
    mode: int
    mtime: int


class Repeat(msgspec.Struct, tag="repeat"):
    """`clew repeat`."""

    id: str
    parameters: dict[int, str] = {}
    files: dict[str, SentFile] = {}
    """The files that parameters refer to, by the parameter's text."""
    network: bool = False
    gpu: bool = False
    incremental: bool = False
    quiet: bool = True
    secrets: Secrets = {}
    request: Uid | None = None
    """The id of a queued repeat. The uids of its executions follow from it, so that a repeat that
    was interrupted goes on with what it has not recorded."""

    def do(self, project: LocalProject, say: Say) -> Document:
        if is_run(self.id):
            return project.pipelines.repeat(self.id, say=say, uid_of=self._uid_of_task)
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
            bring=self._find_file,
            uid=self.request,
        )

    def _uid_of_task(self, task: TaskId) -> Uid | None:
        return None if self.request is None else uid_of_task(self.request, task)

    def _find_file(self, word: str) -> Entry | None:
        file = self.files.get(word)
        if file is None:
            return None
        return Entry("file", file.mode, file.mtime, file.size, file.digest)


class Confirm(msgspec.Struct, tag="confirm"):
    """`clew diff --confirm`."""

    a: str
    b: str
    secrets: Secrets = {}

    def do(self, project: LocalProject, say: Say) -> Document:
        return project.diff(self.a, self.b, confirm=True)


class Commit(msgspec.Struct, tag="commit"):
    """`clew commit` of a client's checkout, whose files are already in the store."""

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
    """`clew recreate`, except for writing the file, which the client does."""

    target: str
    asker: ClientPaths
    brought: dict[str, str] = {}
    """The uploaded files: their paths by digest."""
    network: bool = False
    gpu: bool = False
    secrets: Secrets = {}

    def do(self, project: LocalProject, say: Say) -> Document:
        elsewhere = ClientFiles(self.asker.here(), self.brought)
        with Store(project.directory.store) as store:
            recreation = Recreation(
                project,
                store,
                self.target,
                network=self.network,
                gpu=self.gpu,
                elsewhere=elsewhere,
            )
            return recreation.run(say)


Command = Repeat | Confirm | Commit | Recreate


def main(descriptor: int) -> None:
    os.set_inheritable(descriptor, False)
    with open(descriptor, "w", buffering=1) as out:

        def send(**message: Any) -> None:
            out.write(json.dumps(message) + "\n")

        try:
            document = json.loads(sys.stdin.buffer.readline())
            threading.Thread(target=_end_with_server, daemon=True).start()
            command: Command = msgspec.convert(document, type=Command, str_keys=True)
            with open_local_project(settings.load()) as project:
                project.secrets = project.secrets.only_given(command.secrets)
                send(answer=command.do(project, lambda text: send(said=text)).as_json())
        except ClewError as error:
            send(**error.as_json())
        except Exception as error:
            send(**ClewError(f"{type(error).__name__}: {error}").as_json())


def _end_with_server() -> None:
    """Exit when the input ends. It is read without a buffer: Python locks those at its exit."""
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
