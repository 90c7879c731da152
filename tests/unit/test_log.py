"""The log: one line an entry, whole beside other writers, bounded, without secrets."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clew import log
from clew import project_directory as directories
from clew.errors import Busy
from clew.project_directory import ProjectDirectory


@pytest.fixture
def directory(tmp_path: Path) -> ProjectDirectory:
    return directories.create(tmp_path)


def lines(directory: ProjectDirectory) -> list[str]:
    return directory.log.read_text().splitlines()


def test_an_entry_is_one_line(directory: ProjectDirectory) -> None:
    log.write(directory, "info", "two\nlines and \x1b[31mcolour")
    (line,) = lines(directory)
    assert re.fullmatch(
        rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ {os.getpid()} \S+ info "
        r"two\\nlines and \\x1b\[31mcolour",
        line,
    )
    assert directory.log.stat().st_mode & 0o777 == 0o600


def test_errors_have_a_code_and_bugs_a_traceback(directory: ProjectDirectory) -> None:
    log.write_error(directory, Busy("it is held"))
    try:
        raise ValueError("a bug")
    except ValueError as error:
        log.write_error(directory, error)
    known, bug = lines(directory)
    assert known.endswith(" error busy: it is held")
    assert "Traceback" in bug
    assert "test_log.py" in bug
    assert "ValueError: a bug" in bug


def test_secrets_are_masked(directory: ProjectDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_PASSWORD", "correct horse\nbattery")
    monkeypatch.setenv("MY_OWN", "only-the-user-knows")
    monkeypatch.setenv("CLEW_REDACT", "MY_OWN")
    monkeypatch.setenv("CLEW_TOKEN", "of-another-server")
    monkeypatch.setenv("CLEW_GRAPH", "postgresql://clew:in-the-address@db/clew")
    token = directory.token.read_text().strip()
    told = (
        "correct horse\nbattery",
        "only-the-user-knows",
        "in-the-address",
        token,
    )
    log.write(
        directory,
        "error",
        "; ".join([*told, "https://u:of-a-url@example.org/x", "--password given-to-it"]),
    )
    text = directory.log.read_text()
    assert "***" in text
    for secret in (*told, "battery", "of-a-url", "given-to-it"):
        assert secret not in text


def test_it_is_bounded(directory: ProjectDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "LIMIT", 4000)
    for number in range(200):
        log.write(directory, "info", f"entry {number} " + "x" * 100)
    files = {path.name: path.stat().st_size for path in directory.path.glob("log*")}
    assert files.keys() == {"log", "log.1"}
    assert max(files.values()) < 5000
    assert "entry 199 " in directory.log.read_text() + (directory.path / "log.1").read_text()
    log.write(directory, "error", "y" * (1 << 20))
    assert max(path.stat().st_size for path in directory.path.glob("log*")) < 5000 + 2 * log.LONGEST


WRITER = """
import sys
from pathlib import Path
from clew import log, project_directory, settings
log.LIMIT = 20_000
project = project_directory.find(Path(sys.argv[1]), settings.load({}))
for number in range(100):
    log.write(project, "info", f"{sys.argv[2]} {number} " + "z" * 50)
"""


def test_several_processes_write_whole_lines(directory: ProjectDirectory) -> None:
    words = [sys.executable, "-c", WRITER, str(directory.root)]
    writers = [subprocess.Popen([*words, name]) for name in ("a", "b", "c")]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    told = [line for path in directory.path.glob("log*") for line in path.read_text().splitlines()]
    assert told
    assert all(re.fullmatch(r"\S+Z \d+ \S+ info [abc] \d+ z{50}", line) for line in told)


def test_an_unwritable_log_is_ignored(directory: ProjectDirectory) -> None:
    directory.log.mkdir()
    log.write(directory, "error", "lost")
    directory.log.rmdir()
    elsewhere = directory.root / "elsewhere"
    elsewhere.touch()
    directory.log.symlink_to(elsewhere)
    log.write(directory, "error", "lost")
    assert elsewhere.read_text() == ""
