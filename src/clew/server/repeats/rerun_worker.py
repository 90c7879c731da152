"""A process that does one command that executes recorded programs again, such as `clew repeat`.

    python -m clew.server.repeats.rerun_worker DESCRIPTOR

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
from clew.api.local.recreation.content_sources import ClientFiles
from clew.api.local.recreation.recreate import Recreation
from clew.api.local.repeat import repeat
from clew.api.pipeline_artifacts import is_run
from clew.api.remote.messages import (
    CommitCommand,
    ConfirmCommand,
    RecreateCommand,
    RepeatCommand,
    RerunCommand,
)
from clew.documents.document import Document
from clew.documents.ids import TaskId, Uid
from clew.errors import ClewError
from clew.replay.sandbox.initial_files import Entry
from clew.server.catalogue.repeat_requests import uid_of_task
from clew.store import Store

Say = Callable[[str], None]


def perform(command: RerunCommand, project: LocalProject, say: Say) -> Document:
    match command:
        case RepeatCommand():
            return _repeat(command, project, say)
        case ConfirmCommand():
            return project.diff(command.a, command.b, confirm=True)
        case CommitCommand():
            return commit_files(
                project,
                *command.checkout.read(),
                message=command.message,
                network=command.network,
                gpu=command.gpu,
                quiet=command.quiet,
                say=say,
            )
        case RecreateCommand():
            with Store(project.directory.store) as store:
                recreation = Recreation(
                    project,
                    store,
                    command.target,
                    network=command.network,
                    gpu=command.gpu,
                    elsewhere=ClientFiles(command.asker.here(), command.brought),
                )
                return recreation.run(say)


def _repeat(command: RepeatCommand, project: LocalProject, say: Say) -> Document:
    def uid_of(task: TaskId) -> Uid | None:
        return None if command.request is None else uid_of_task(command.request, task)

    def find_file(word: str) -> Entry | None:
        file = command.files.get(word)
        if file is None:
            return None
        return Entry("file", file.mode, file.mtime, file.size, file.digest)

    if is_run(command.id):
        return project.pipelines.repeat(command.id, say=say, uid_of=uid_of)
    return repeat(
        project,
        command.id,
        parameters=command.parameters,
        network=command.network,
        gpu=command.gpu,
        incremental=command.incremental,
        keep=None,
        quiet=command.quiet,
        say=say,
        bring=find_file,
        uid=command.request,
    )


def main(descriptor: int) -> None:
    os.set_inheritable(descriptor, False)
    with open(descriptor, "w", buffering=1) as out:

        def send(**message: Any) -> None:
            out.write(json.dumps(message) + "\n")

        try:
            document = json.loads(sys.stdin.buffer.readline())
            threading.Thread(target=_end_with_server, daemon=True).start()
            command: RerunCommand = msgspec.convert(document, type=RerunCommand, str_keys=True)
            with open_local_project(settings.load()) as project:
                project.secrets = project.secrets.only_given(command.secrets)
                result = perform(command, project, lambda text: send(said=text))
                send(answer=result.as_json())
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
