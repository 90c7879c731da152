"""The reference pages name everything there is, and nothing that is not."""

import dataclasses
import importlib
import inspect
import re
from pathlib import Path

import click
import msgspec
import pytest

import clew
from clew.cli.main import COMMANDS
from clew.errors import ClewError

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text()


def section(text: str, heading: str) -> str:
    wanted = rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)"
    found = re.search(wanted, text, re.MULTILINE | re.DOTALL)
    assert found, f"no section {heading}"
    return found[1]


def codes(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented_and_no_other(name: str) -> None:
    command: click.Command = importlib.import_module(f"clew.cli.commands.{name}").command
    told = section(page("cli"), f"clew {name}")
    rows = "\n".join(line.partition(" | ")[0] for line in told.splitlines() if "| `-" in line)
    documented = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", rows))
    inside = command.commands.values() if isinstance(command, click.Group) else [command]
    params = [p for one in inside for p in one.params]
    options = {opt for p in params if isinstance(p, click.Option) for opt in p.opts}
    assert documented == options


def test_every_command_is_documented_and_no_other() -> None:
    documented = re.findall(r"^## clew (\w+)$", page("cli"), re.MULTILINE)
    assert sorted(documented) == sorted(COMMANDS)


def _tree(kind: type[ClewError]) -> list[type[ClewError]]:
    return [kind, *(found for child in kind.__subclasses__() for found in _tree(child))]


def test_every_error_is_documented_with_its_status() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (\d+) \|", page("errors"), re.MULTILINE)
    ours = [kind for kind in _tree(ClewError) if kind.__module__ == "clew.errors"]
    assert sorted(rows) == sorted((kind.code, str(kind.exit_status)) for kind in ours)


def test_every_public_name_is_documented() -> None:
    text = page("python")
    for name in clew.__all__:
        assert re.search(rf"\b{re.escape(name)}\b", text), name


def test_every_member_of_a_project_is_documented_with_its_arguments() -> None:
    told = section(page("python"), "Project")
    for name, member in inspect.getmembers(clew.Project):
        if name.startswith("_"):
            continue
        if not inspect.isfunction(member):
            assert name in codes(told), name
            continue
        signature = re.search(rf"`{name}\((.*?)\)`", told)
        assert signature, name
        arguments = [p for p in inspect.signature(member).parameters if p != "self"]
        given = [w.split("=")[0].strip("* ") for w in signature[1].split(",")]
        assert [word for word in given if word] == arguments, name


@pytest.mark.parametrize(
    "record",
    ["Execution", "Process", "File", "Outcome", "Version", "Restored", "Reclaimed", "Transfer"],
)
def test_every_field_of_a_record_is_documented(record: str) -> None:
    kind = getattr(clew, record)
    told = re.search(rf"^### [^\n]*{record}[^\n]*$(.*?)(?=^###? |\Z)", page("python"), re.M | re.S)
    assert told
    structure = msgspec.structs if issubclass(kind, msgspec.Struct) else dataclasses
    fields = {field.name for field in structure.fields(kind)} - {"document", "ask", "path_b64"}
    assert fields <= codes(told[1])


LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("name", ["cli", "json", "python", "errors"])
def test_links_have_targets(name: str) -> None:
    for target in LINK.findall(page(name)):
        assert (REFERENCE / target).exists(), target
