"""The tutorial and the how-to pages are true: their commands run, and print what the page shows.

In a `console` block a line that starts with `$ ` is a command, `> ` continues it, and other
lines are what it prints; `…` stands for anything, on a line of its own for any number of lines.
A command followed by no such lines may print what it likes. `python` blocks are run as they
stand. A page is one session in one empty folder, from its top to its bottom, and every command
must succeed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted([*DOCS.glob("tutorial/**/*.md"), *DOCS.glob("how-to/**/*.md")])
NEEDS_POSTGRESQL = {"share-one-postgresql.md"}

BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    command: str
    shown: tuple[str, ...]


def steps(page: str) -> Iterator[Step]:
    for kind, body in BLOCK.findall(page):
        if kind == "python":
            yield Step(f"python3 - <<'END_OF_BLOCK'\n{body}END_OF_BLOCK", ())
        else:
            yield from console(body.splitlines())


def console(lines: list[str]) -> Iterator[Step]:
    command: list[str] = []
    shown: list[str] = []
    for line in lines:
        if line.startswith("$ "):
            if command:
                yield Step("\n".join(command), tuple(shown))
            command, shown = [line[2:]], []
        elif line == ">" or line.startswith("> "):
            command.append(line[2:])
        else:
            shown.append(line)
    if command:
        yield Step("\n".join(command), tuple(shown))


def pattern(shown: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(
        "".join(
            r"(?:.*\n)*?" if line == "…" else ".*?".join(map(re.escape, line.split("…"))) + r" *\n"
            for line in shown
        )
    )


def session(page: list[Step], folder: Path, log: Path) -> str:
    """One shell script of a page's steps; each writes its output and status beside the others."""
    parts = [f"cd '{folder}'"]
    for n, step in enumerate(page):
        parts.append(f"{{ {step.command}\n}} >'{log}/{n}.out' 2>&1")
        parts.append(f"echo $? >'{log}/{n}.status'")
    return "\n".join(parts)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLEW_")}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "LC_ALL": "C.UTF-8",
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_page(
    path: Path, tmp_path: Path, environment: dict[str, str], request: pytest.FixtureRequest
) -> None:
    if path.name in NEEDS_POSTGRESQL:
        environment |= {"PGHOST": request.getfixturevalue("postgres_server"), "PGUSER": "clew"}
    folder, log = tmp_path / "page", tmp_path / "log"
    folder.mkdir()
    log.mkdir()
    page = list(steps(path.read_text()))
    assert page
    subprocess.run(
        ["bash", "-c", session(page, folder, log)], env=environment, stdin=subprocess.DEVNULL
    )
    for n, step in enumerate(page):
        status = (log / f"{n}.status").read_text().strip()
        output = (log / f"{n}.out").read_text()
        assert status == "0", f"$ {step.command}\n{output}"
        if step.shown:
            assert pattern(step.shown).fullmatch(output), (
                f"$ {step.command}\nprints:\n{output}\nthe page shows:\n" + "\n".join(step.shown)
            )


def test_the_comparison_can_fail() -> None:
    shown = ("one … three", "…", "end")
    assert pattern(shown).fullmatch("one 2 three\nend\n")
    assert pattern(shown).fullmatch("one 2 three\na\nb\nend\n")
    assert not pattern(shown).fullmatch("one 2 four\nend\n")
    assert not pattern(shown).fullmatch("one 2 three\n")


def test_continued_commands_are_one_step() -> None:
    assert list(console(["$ cat <<E", "> a", ">", "> E", "a", "$ true"])) == [
        Step("cat <<E\na\n\nE", ("a",)),
        Step("true", ()),
    ]
