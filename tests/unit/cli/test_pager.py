"""The pager: only on a terminal, the one the user chose, and leaving it early is no error."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = """
import sys
import click
from clew.cli.options import pager_option
from clew.cli.output import print_line, print_message

@click.command()
@pager_option
def command():
    for n in range(COUNT):
        print_line(f"line {n}")
    print_message("a message")
    if COUNT == 3:
        raise click.UsageError("an error")

try:
    command.main(sys.argv[1:], standalone_mode=False)
except click.UsageError as error:
    print(error, file=sys.stderr)
"""


def run_on_terminal(*words: str, count: int = 2, **environment: str) -> tuple[int, list[str]]:
    """The status of the command, and the lines on the terminal."""
    master, slave = pty.openpty()
    script = COMMAND.replace("COUNT", str(count))
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("PAGER", "CLEW_PAGER")
    }
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**inherited, "TERM": "xterm", **environment},
    )
    os.close(slave)
    output = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the last process closed the terminal
            break
        output += piece
    os.close(master)
    return process.wait(), output.decode().splitlines()


def test_the_chosen_pager_gets_results_and_messages() -> None:
    chosen = {"CLEW_PAGER": "sed 's/^/paged: /'", "PAGER": "false"}
    assert run_on_terminal(**chosen) == (
        0,
        ["paged: line 0", "paged: line 1", "paged: a message"],
    )


@pytest.mark.parametrize(
    ("words", "environment"),
    [
        (["--no-pager"], {"PAGER": "sed 's/^/paged: /'"}),
        ([], {"PAGER": "sed 's/^/paged: /'", "TERM": "dumb"}),
        ([], {"PAGER": "no-such-pager"}),
    ],
)
def test_without_a_pager(words: list[str], environment: dict[str, str]) -> None:
    assert run_on_terminal(*words, **environment) == (0, ["line 0", "line 1", "a message"])


def test_less_prints_a_short_text_and_ends() -> None:
    status, lines = run_on_terminal()
    shown = [line.removesuffix("\x1b[m") for line in lines]
    assert (status, [line for line in shown if "line" in line]) == (0, ["line 0", "line 1"])


def test_an_error_is_printed_after_the_pager_ended() -> None:
    _, lines = run_on_terminal(count=3, PAGER="sed 's/^/paged: /'")
    assert lines[-2:] == ["paged: a message", "an error"]


def test_leaving_the_pager_early_is_not_an_error() -> None:
    assert run_on_terminal(count=200_000, PAGER="head -n 1") == (0, ["line 0"])


def test_output_into_a_pipe_is_not_paged(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", COMMAND.replace("COUNT", "1")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PAGER": f"tee {tmp_path}/seen"},
    )
    assert ran.stdout == "line 0\n"
    assert not (tmp_path / "seen").exists()
