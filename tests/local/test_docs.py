"""The tutorial and the how-to pages are true: their commands run, and print what the page shows.

In a `console` block a line that starts with `$ ` is a command, `> ` continues it, and other
lines are what it prints; `…` stands for anything, on a line of its own for any number of lines.
A command followed by no such lines may print what it likes. `python` blocks are run as they
stand. A page is one session at a terminal in one empty folder, from its top to its bottom, and
every command must succeed.
"""

import os
import pty
import re
import subprocess
import sys
import termios
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

from clew.project_directory import create

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted([*DOCS.glob("tutorial/**/*.md"), *DOCS.glob("how-to/**/*.md")])
NEEDS_A_CLUSTER = {  # tests/cluster runs these
    "capture-a-cluster.md",
    "operate-on-a-cluster.md",
    "test-on-a-cluster.md",
    "train-in-a-notebook.md",
}
NEEDS_FAKE_NODES = {"place-predictions-near-users.md"}  # tests/cluster/test_scheduler.py runs it
NEEDS_A_WORKLOAD = {  # tests/cluster has their commands
    "reproduce-on-a-cluster.md",
    "run-a-pipeline-on-a-cluster.md",
    "train-on-a-cluster.md",
}
NEEDS_EMULATION = {"test-on-aarch64.md"}  # `make test-aarch64` is what it describes
NEEDS_POSTGRESQL = {"share-one-postgresql.md"}

MARK = "\x1e"

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


def session(page: list[Step], folder: Path) -> str:
    """One shell script of a page's steps; after each it writes the status between two marks."""
    parts = [f"cd '{folder}'"]
    for step in page:
        parts.append(f"{{ {step.command}\n}}")
        parts.append(f"status=$?; printf '{MARK}%d{MARK}' $status; [ $status = 0 ] || exit")
    return "\n".join(parts)


def at_a_terminal(script: str, environment: dict[str, str]) -> str:
    """What a person sees who types this: the page shows the same."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, 120))
    with subprocess.Popen(
        ["setsid", "--ctty", "bash", "-c", script],
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ):
        os.close(theirs)
        seen = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return seen.decode().replace("\r\n", "\n")


def left(seen: str) -> str:
    """What still stands on the terminal: a bar is erased once it is done."""
    return re.sub(r"[^\n\x1e]*\r\x1b\[K", "", seen)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody holds the other end any more
        return b""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CLEW_")}
    return {
        **kept,
        "CLEW_PAGER": "cat",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
    }


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in PAGES
        if path.name not in NEEDS_A_CLUSTER | NEEDS_FAKE_NODES | NEEDS_A_WORKLOAD | NEEDS_EMULATION
    ],
    ids=lambda path: str(path.relative_to(DOCS)),
)
def test_page(
    path: Path, tmp_path: Path, environment: dict[str, str], request: pytest.FixtureRequest
) -> None:
    if path.name in NEEDS_POSTGRESQL:
        environment |= {"PGHOST": request.getfixturevalue("postgres_server"), "PGUSER": "clew"}
    holds(path, tmp_path / "page", environment)


def holds(path: Path, folder: Path, environment: dict[str, str]) -> None:
    """Go through a page in a new folder, and see there what it shows."""
    folder.mkdir(exist_ok=True)
    page = list(steps(path.read_text()))
    assert page
    seen = left(at_a_terminal(session(page, folder), environment)).split(MARK)
    for step, output, status in zip_longest(page, seen[:-1:2], seen[1::2], fillvalue="(not run)"):
        assert isinstance(step, Step)
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


def test_every_setting_is_documented() -> None:
    page = (DOCS / "reference" / "settings.md").read_text()
    source = (DOCS.parent / "src" / "clew" / "settings.py").read_text()
    variables = set(re.findall(r'(?:value|base|environ\.get)\("([A-Z_]+)"', source))
    assert len(variables) >= 8
    assert {name for name in variables if f"| `{name}` |" not in page} == set()


def test_every_key_of_the_configuration_is_documented(tmp_path: Path) -> None:
    page = (DOCS / "reference" / "settings.md").read_text()
    folder = create(tmp_path)
    values = tomllib.loads((folder.path / "config.toml").read_text())
    keys = {"uid", *(f"record.{key}" for key in values.pop("record"))}
    assert set(values) == {"uid"}
    assert {key for key in keys if f"| `{key}` |" not in page} == set()
    names = {path.name for path in folder.path.iterdir()}
    assert {name for name in names if f"| `{name}" not in page} == set()


def test_every_source_file_that_a_page_names_exists() -> None:
    top = DOCS.parent
    named = {
        (page.name, found)
        for page in (top / "CONTRIBUTING.md", *DOCS.rglob("*.md"))
        for found in re.findall(r"`((?:tests|src/clew)/[a-z\d_/.]+)`", page.read_text())
    }
    assert len(named) > 100
    assert {one for one in named if not (top / one[1]).exists()} == set()


def test_every_module_that_a_diagram_names_exists() -> None:
    top = DOCS.parent
    page = (DOCS / "architecture.md").read_text()
    label = r'(?:\["|participant \w+ as )([a-z\d_]+(?:/[a-z\d_]+)+)\b(?![/.(])'
    named = {name for name in re.findall(label, page) if not name.startswith("web/")}
    assert len(named) > 60
    paths = "".join(
        f"/{path.relative_to(top).with_suffix('')}\n" for path in top.rglob("src/clew/**/*")
    )
    assert {name for name in named if f"/{name}\n" not in paths} == set()
