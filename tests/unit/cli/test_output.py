"""Sizes, times, tables; and that nothing from outside reaches a terminal raw."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.cli.output import escape, format_duration, format_size, print_json, shorten_path


@given(st.text())
def test_cleaned_text_is_one_printable_line(text: str) -> None:
    assert escape(text).isprintable()


@given(st.text(st.characters(exclude_categories=("C", "Z"))))
def test_printable_text_stays_as_it_is(text: str) -> None:
    assert escape(text) == text


def test_escape_codes_become_visible() -> None:
    assert escape("a\x1b[31mb\tc\nd") == "a\\e[31mb\\tc\\nd"


def test_json_has_no_control_characters(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """U+009B begins an escape sequence as ESC and [ do, and U+202E reverses the text."""
    document = {"name": "a\x1b[2J\x7f\x9b31m\u202eb ü"}
    print_json(document)
    printed = capfdbinary.readouterr().out.decode()
    assert printed.rstrip("\n").isprintable()
    assert "ü" in printed
    assert json.loads(printed) == document


@pytest.mark.parametrize(
    ("count", "told"),
    [(None, ""), (0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (12_345, "12.3 kB"),
     (999_949, "999.9 kB"), (999_950, "1.0 MB"), (45_100_000, "45.1 MB"),
     (3 * 10**15, "3000.0 TB")],
)  # fmt: skip
def test_size(count: int | None, told: str) -> None:
    assert format_size(count) == told


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(None, ""), (0.04, "0.0 s"), (3.21, "3.2 s"), (75, "1 min 15 s"), (3_725, "1 h 02 min")],
)
def test_duration(seconds: float | None, told: str) -> None:
    assert format_duration(seconds) == told


def test_paths_are_relative_where_that_is_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shorten_path(str(tmp_path / "a" / "b")) == "a/b"
    assert shorten_path("/etc/hosts") == "/etc/hosts"
    assert shorten_path("stdout") == "stdout"


TABLE = """
from clew.cli.output import print_table
print_table(("id", "text"), [("e1", "x" * 300), ("e22", "a\\tb")])
"""


def test_a_piped_table_is_lines_with_tabs() -> None:
    ran = subprocess.run([sys.executable, "-c", TABLE], capture_output=True, text=True, check=True)
    assert ran.stdout == f"id\ttext\ne1\t{'x' * 300}\ne22\ta\\tb\n"


@pytest.mark.parametrize("no_color", [False, True])
def test_a_table_on_a_terminal_fits_its_width(no_color: bool) -> None:
    environment = {**os.environ, "COLUMNS": "40", "NO_COLOR": "1" if no_color else ""}
    master, slave = pty.openpty()
    subprocess.run([sys.executable, "-c", TABLE], stdout=slave, check=True, env=environment)
    os.close(slave)
    with os.fdopen(master, "rb") as terminal:
        lines = terminal.read1().decode().splitlines()
    assert ("\x1b[" in lines[0]) is not no_color
    assert lines[1] == f"e1   {'x' * 34}…"
    assert lines[2] == "e22  a\\tb"
