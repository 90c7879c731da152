"""The group: help without loading, errors as exit statuses, JSON errors, closed pipes, bugs."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.driver import Project

from clew.cli import main as cli
from clew.cli.output import FIELDS, select_fields
from clew.errors import ClewError


@pytest.fixture
def clew(tmp_path: Path) -> Project:
    return Project(tmp_path, init=False)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_matches_the_table(name: str) -> None:
    command = importlib.import_module(f"clew.cli.commands.{name}").command
    assert command.name == name
    assert command.short_help == cli.COMMANDS[name]
    inside = command.commands if isinstance(command, click.Group) else {"": command}
    assert "Example" in CliRunner().invoke(cli.clew, [name, "--help"]).output
    for word, one in inside.items():
        assert "--json" in {option for p in one.params for option in p.opts}
        text = CliRunner().invoke(cli.clew, [name, *filter(None, [word]), "--help"]).output
        assert "Example" in text
        assert all(p.help for p in one.params if isinstance(p, click.Option))


def test_every_command_is_in_the_table() -> None:
    here = Path(cli.__file__).parent / "commands"
    files = {path.stem for path in here.glob("*.py")} - {"__init__"}
    files |= {path.parent.name for path in here.glob("*/__init__.py")}
    assert files == set(cli.COMMANDS)


@pytest.mark.parametrize("words", [(), ("key",), ("pipeline",)])
def test_a_group_without_a_command_prints_its_whole_help(
    clew: Project, words: tuple[str, ...]
) -> None:
    ran = clew(*words)
    assert (ran.stdout, ran.stderr) == (clew(*words, "--help").stdout, "")


def test_a_mistyped_command_is_guessed(clew: Project) -> None:
    assert clew.error("lisst", status=2) == (
        "usage",
        "no such command 'lisst'. Did you mean 'list'?",
        "clew --help",
    )


def test_a_mistyped_option_is_guessed(clew: Project) -> None:
    code, message, hint = clew.error("list", "--jsn", status=2)
    assert (code, hint) == ("usage", "clew list --help")
    assert "--json" in message


def test_without_a_project(clew: Project) -> None:
    code, message, hint = clew.error("list", status=5)
    assert code == "no-project"
    assert str(clew.folder) in message
    assert hint == "clew init"


@pytest.mark.parametrize(
    "words", [["exec", "--json"], ["exec", "--json", "--nome", "x", "--", "w"]]
)
def test_exec_leaves_stdout_alone_even_when_it_is_called_wrongly(
    clew: Project, words: list[str]
) -> None:
    ran = clew(*words, status=2)
    assert ran.stdout == ""
    assert json.loads(ran.stderr.splitlines()[-1])["error"]["code"] == "usage"


def test_json_of_the_recorded_command_is_not_ours(clew: Project) -> None:
    ran = clew("exec", "--nome", "x", "--", "tool", "--json", status=2)
    assert ran.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["--json", "bash"], ["shell", "script"]),
        (["bash", "--json"], ["shell", "script"]),
        (["--json=shell", "bash"], ["shell"]),
        (["bash", "--json", "script,shell"], ["script", "shell"]),
    ],
)
def test_json_prints_the_whole_document_or_some_fields(
    words: list[str], fields: list[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert cli.main(["completion", *words]) == 0
    assert list(json.loads(capsysbinary.readouterr().out)) == fields


def test_an_unknown_field_of_json_is_refused_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["completion", "bash", "--json=shel"]) == 2
    assert json.loads(capsys.readouterr().out) == {
        "error": {"code": "usage", "message": "no field shel", "hint": "fields: shell, script"}
    }


def test_fields_are_those_of_each_element_of_a_list() -> None:
    context = click.Context(cli.clew)
    context.meta[FIELDS] = ("id", "why")
    with context:
        assert select_fields([]) == []
        assert select_fields([{"id": 1, "name": "a"}, {"id": 2, "why": "b"}]) == [
            {"id": 1, "why": None},
            {"id": 2, "why": "b"},
        ]


def test_a_closed_pipe_is_quiet(clew: Project) -> None:
    clew("init")
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as nobody:
        process = clew.start("list", "--json", stdout=nobody, stderr=subprocess.PIPE)
        _, err = process.communicate()
    assert (process.returncode, err) == (141, "")


BROKEN = """
import sys
from clew.cli import main
from clew.cli.commands import {module}
def break_(*_, **__): raise {error}
{module}.command.callback = break_
sys.exit(main.main(sys.argv[1:]))
"""


@pytest.mark.parametrize(
    ("module", "error", "status", "told"),
    [
        ("list", "ValueError('a bug')", 1, "ValueError: a bug"),
        ("exec", "ValueError('a bug')", 125, "ValueError: a bug"),
        ("list", "KeyboardInterrupt", 130, ""),
        ("list", "main.ClewError('so', hint='do')", 1, "error: so\nhint: do\n"),
        ("exec", "main.ClewError('so', hint='do')", 125, "error: so\nhint: do\n"),
        ("exec", "main.UsageError('so', hint='do')", 2, "error: so\nhint: do\n"),
    ],
)
def test_what_comes_of_an_exception(module: str, error: str, status: int, told: str) -> None:
    script = BROKEN.format(module=module, error=error)
    ran = subprocess.run([sys.executable, "-c", script, module], capture_output=True, text=True)
    assert ran.returncode == status
    assert told in ran.stderr
    assert ran.stdout == ""


def _tree(kind: type[ClewError]) -> list[type[ClewError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in _tree(child))]


def test_no_error_shares_its_code_with_another() -> None:
    codes = [kind.code for kind in _tree(ClewError)]
    assert len(codes) == len(set(codes))
