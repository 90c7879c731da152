"""`clew`: the group of commands, and the one place where an error becomes an exit status.

Commands are loaded when they are called; until then only their one-line summaries in
`COMMANDS` are known. So `clew --help` and `clew --version` load no database and no store.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

import click

from clew import __version__
from clew.errors import ClewError, RecordingFailed, UsageError

COMMANDS = {
    "init": "Make a project.",
    "exec": "Run a command and record what it reads and writes.",
    "pipeline": "Run Kubeflow pipelines, and show their runs.",
    "server": "Serve the project to the kfp client, and by an API of its own.",
    "operator": "Keep notebooks, TensorBoards and volume viewers on a cluster.",
    "viewer": "Show a folder in a browser, to look at it and to change it.",
    "list": "List the executions, oldest first.",
    "show": "Show one execution: processes, files, environment, packages.",
    "trace": "Ask where a file came from, or what it went into.",
    "restore": "Bring back a version of a file.",
    "cat": "Print a version of a file.",
    "repeat": "Run an execution again in isolation, and compare.",
    "given": "Repeat an execution with other parameters.",
    "diff": "Compare two executions.",
    "checkout": "Get the files of an execution, to change them.",
    "status": "Show what was changed in a checkout.",
    "commit": "Run a checkout again with what was changed.",
    "recreate": "Make a file again from its lineage.",
    "note": "Add a remark to a file or an execution.",
    "source": "Say where a file was taken from.",
    "export": "Write an execution as W3C PROV, an RO-Crate or an image.",
    "push": "Send executions to a folder or an S3 bucket.",
    "pull": "Fetch executions from where they were pushed.",
    "key": "Sign what is pushed, and know who signed what is pulled.",
    "rm": "Forget executions.",
    "gc": "Free the space of what was forgotten.",
    "fsck": "Prove that every stored byte is what it says.",
}

_RECORDING = ("exec", "repeat", "given", "commit")

CLOSED_PIPE = 128 + signal.SIGPIPE
"""What a shell reports for a program that SIGPIPE ended: the reader of our stdout went away."""


class _ReaderGone(Exception):
    """Whoever read our stdout does so no more."""


class Group(click.Group):
    """Commands by name, each imported when it is first asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"clew.cli.commands.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise click.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderGone from error  # click would make it an exit status of its own

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: clew exec -- python train.py && clew trace model.pkl",
)
@click.version_option(__version__, message="clew %(version)s")
def clew() -> None:
    """Run a command, and from then on know where every file came from."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the exit status is returned, never raised."""
    if arguments is not None:
        return _run(list(arguments))
    words = sys.argv[1:]
    if _command(words) in _RECORDING:
        gc.disable()  # they make a great many plain values, and keep them all to their end
    try:
        return _run(words)
    finally:
        gc.freeze()  # Python's end would look through everything for cycles, several times


def _run(words: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what a terminal cannot show is shown escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        result: Any = clew.main(words, prog_name="clew", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except (BrokenPipeError, _ReaderGone):
        _drop_stdout()
        return CLOSED_PIPE
    except (click.Abort, KeyboardInterrupt):
        return 128 + signal.SIGINT
    except click.exceptions.NoArgsIsHelpError as error:  # `clew key`: its message is the help
        _write(sys.stderr, f"{error.format_message()}\n")
        return error.exit_code
    except (ClewError, click.ClickException) as error:
        found = error if isinstance(error, ClewError) else _of_click(error)
        _log(found)
        return _report(words, found)
    except Exception as error:
        import traceback

        traceback.print_exc()
        log = _log(error)
        where = f"the traceback is in {log}" if log else "the traceback is above"
        what = f"a bug in Clew: {type(error).__name__}: {error}"
        return _report(words, ClewError(what, hint=f"please report it; {where}"))


def _log(error: Exception) -> str | None:
    """Enter what the command ends with into the project's log; where that is."""
    with suppress(Exception):  # the error itself is what matters
        from clew import log, project_directory, settings

        project = project_directory.here(settings.load())
        if project is not None:
            log.write_error(project, error)
            return str(project.log)
    return None


def _of_click(error: click.ClickException) -> ClewError:
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    if not isinstance(error, click.UsageError):
        return ClewError(message)
    where = error.ctx.command_path if error.ctx else "clew"
    return UsageError(message, hint=f"{where} --help")


def _report(words: list[str], error: ClewError) -> int:
    """Say what went wrong: to a person on stderr, to a program as JSON where it reads."""
    is_exec = _command(words) == "exec"
    if "--json" in words[: words.index("--") if "--" in words else None]:
        import json

        document = json.dumps(error.as_json(), ensure_ascii=False)
        _write(sys.stderr if is_exec else sys.stdout, f"{document}\n")
    else:
        from clew.cli.output import clean

        message = "\n".join(map(clean, error.message.split("\n")))
        hint = f"hint: {clean(error.hint)}\n" if error.hint else ""
        _write(sys.stderr, f"error: {message}\n{hint}")
    if is_exec and not isinstance(error, (RecordingFailed, UsageError)):
        return RecordingFailed.exit_status  # a small status would read as the command's own
    return error.exit_status


def _command(words: list[str]) -> str:
    return next((word for word in words if not word.startswith("-")), "")


def _write(stream: IO[str], text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _drop_stdout()


def _drop_stdout() -> None:
    """Let the interpreter's own flush at exit succeed although nobody reads any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
