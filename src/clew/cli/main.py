"""`clew`: the group of all commands. Only this module turns an exception into an exit status.

A command's module is imported when the command is called; `SECTIONS` has the one-line summaries.
So `clew --help` and `clew --version` load no database and no store.
"""

import gc
import importlib
import io
import os
import re
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any

import click

from clew import __version__
from clew.errors import ClewError, RecordingFailed, UsageError

SECTIONS = {
    "Record work": {
        "init": "Create a project.",
        "exec": "Run a command and record what it reads and writes.",
        "pipeline": "Run Kubeflow pipelines and show their runs.",
        "kernel": "Install the kernel that records notebooks cell by cell.",
    },
    "Query the record": {
        "list": "List the executions, newest first.",
        "show": "Show one execution: result, files, packages, lineage.",
        "status": "Show the state of the project, or the changes in a checkout.",
        "trace": "Show where a file came from, or what was made from it.",
        "impact": "Show what was made from a file: trace --down.",
        "cluster": "Show what existed in a Kubernetes cluster at a time.",
        "open": "Open a lineage or the server's page in the browser.",
        "metrics": "Compare executions and runs by parameters and metrics.",
        "diff": "Compare two executions.",
        "cat": "Print a version of a file.",
        "note": "Add a note to a file or an execution.",
        "tag": "Add tags to an execution, or remove them.",
        "source": "Record the URL a file was downloaded from.",
    },
    "Repeat work and restore files": {
        "repeat": "Run an execution again in isolation and compare the results.",
        "given": "Repeat an execution with other parameters.",
        "restore": "Restore a version of a file.",
        "recreate": "Recreate a file from its lineage.",
        "notebook": "Run a notebook again, only the cells that changed if you like.",
        "reproduce": "Run the Pods that made a result again, as few as possible, and compare.",
        "checkout": "Write the input files of an execution to a directory, to edit them.",
        "commit": "Run a checkout with its changes and record it.",
    },
    "Share": {
        "push": "Send executions to a remote: a directory or an S3 bucket.",
        "pull": "Fetch executions from a remote.",
        "remote": "Name remotes, so that push and pull need no address.",
        "bundle": "Write executions with everything they need to one file.",
        "export": "Write an execution as W3C PROV, an RO-Crate or an image.",
        "key": "Manage the signing key and the known signers.",
    },
    "Maintain": {
        "rm": "Remove executions from the record.",
        "gc": "Delete stored content that no execution uses.",
        "fsck": "Verify the stored content and the signatures.",
        "completion": "Print the completion script of a shell.",
    },
    "Serve": {
        "up": "Open the web app of the project, with local notebooks and TensorBoards.",
        "server": "Serve the project over HTTP: the KFP API and Clew's own.",
        "viewer": "Browse and edit a directory in a web browser.",
        "operator": "Manage notebooks, TensorBoards and volume viewers on Kubernetes.",
        "agent": "Observe what runs on a Kubernetes cluster.",
        "scheduler": "Tell kube-scheduler which node is nearest to a Pod's clients.",
    },
}
"""The commands and their summaries, as `clew --help` lists them."""

COMMANDS = {name: text for section in SECTIONS.values() for name, text in section.items()}

_FIELD_LIST = re.compile("[a-z][a-z0-9_]*(,[a-z][a-z0-9_]*)+")

_RECORDING_COMMANDS = ("exec", "repeat", "given", "commit")

CLOSED_PIPE = 128 + signal.SIGPIPE
"""The status a shell reports for a program that SIGPIPE ended: the reader of stdout went away."""


class _StdoutClosed(Exception):
    """The reader of stdout closed it."""


class Group(click.Group):
    """Imports a command's module when the command is first looked up."""

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
        name, command, rest = super().resolve_command(ctx, args)
        return name, command, rest if name == "exec" else _join_json_fields(rest)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _StdoutClosed from error  # click would exit with its own status

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: clew exec -- python train.py && clew trace model.pkl",
)
@click.version_option(__version__, message="clew %(version)s")
def clew() -> None:
    """Run commands and record where every file comes from."""


def _join_json_fields(words: list[str]) -> list[str]:
    """Give `--json` a value, so that click does not take the next argument for one.

    A next word that is a list, such as `id,state`, is the value; else the value is empty.
    """
    end = words.index("--") if "--" in words else len(words)
    joined: list[str] = []
    for word in words[:end]:
        if joined and joined[-1] == "--json=" and _FIELD_LIST.fullmatch(word):
            joined[-1] += word
        else:
            joined.append("--json=" if word == "--json" else word)
    return joined + words[end:]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status; never raises."""
    if arguments is not None:
        return _run(list(arguments))
    words = sys.argv[1:]
    if _command_name(words) in _RECORDING_COMMANDS:
        gc.disable()  # they create many objects and keep them all until the end
    try:
        return _run(words)
    finally:
        gc.freeze()  # spares the interpreter's search for cycles at exit


def _run(words: list[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escape what the encoding cannot represent
            stream.reconfigure(errors="backslashreplace")
    if "_CLEW_COMPLETE" in os.environ:
        importlib.import_module("clew.cli.completion")  # it tells click about our scripts
    try:
        result: Any = clew.main(words, prog_name="clew", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except (BrokenPipeError, _StdoutClosed):
        _drop_stdout()
        return CLOSED_PIPE
    except (click.Abort, KeyboardInterrupt):
        return 128 + signal.SIGINT
    except click.exceptions.NoArgsIsHelpError as error:  # `clew`, `clew key`: print the help
        _write(sys.stdout, f"{error.format_message()}\n")
        return 0
    except (ClewError, click.ClickException) as error:
        clew_error = error if isinstance(error, ClewError) else _convert_click_error(error)
        _log(clew_error)
        return _report(words, clew_error)
    except Exception as error:
        import traceback

        traceback.print_exc()
        log = _log(error)
        where = f"the traceback is in {log}" if log else "the traceback is above"
        what = f"a bug in Clew: {type(error).__name__}: {error}"
        return _report(words, ClewError(what, hint=f"please report it; {where}"))


def _log(error: Exception) -> str | None:
    """Write the error to the project's log and return the path of the log."""
    with suppress(Exception):  # the error itself is what matters
        from clew import log, project_directory, settings

        project = project_directory.find_here(settings.load())
        if project is not None:
            log.write_error(project, error)
            return str(project.log)
    return None


def _convert_click_error(error: click.ClickException) -> ClewError:
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    if not isinstance(error, click.UsageError):
        return ClewError(message)
    where = error.ctx.command_path if error.ctx else "clew"
    return UsageError(message, hint=f"{where} --help")


def _report(words: list[str], error: ClewError) -> int:
    """Print the error as text on stderr; with --json, as a document on stdout.

    For `exec` the document goes to stderr too: stdout belongs to the recorded command.
    """
    is_exec = _command_name(words) == "exec"
    own_words = words[: words.index("--") if "--" in words else None]
    if any(word == "--json" or word.startswith("--json=") for word in own_words):
        import json

        document = json.dumps(error.as_json(), ensure_ascii=False)
        _write(sys.stderr if is_exec else sys.stdout, f"{document}\n")
    else:
        from clew.cli.output import escape

        message = "\n".join(map(escape, error.message.split("\n")))
        hint = f"hint: {escape(error.hint)}\n" if error.hint else ""
        _write(sys.stderr, f"error: {message}\n{hint}")
    if is_exec and not isinstance(error, (RecordingFailed, UsageError)):
        return RecordingFailed.exit_status  # a small status would look like the command's
    return error.exit_status


def _command_name(words: list[str]) -> str:
    return next((word for word in words if not word.startswith("-")), "")


def _write(stream: IO[str], text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _drop_stdout()


def _drop_stdout() -> None:
    """Redirect stdout to /dev/null so that the interpreter's flush at exit succeeds."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)
