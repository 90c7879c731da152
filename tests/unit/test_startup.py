"""`clew --version` and `--help` answer at once: they load nothing that they do not need."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "asyncio",
    "blake3",
    "clew.api",
    "clew.db",
    "clew.prov",
    "clew.run",
    "clew.store",
    "clew.witness",
    "ctypes",
    "http",
    "msgspec",
    "prov",
    "psycopg",
    "rich",
    "rocrate",
    "sqlite3",
    "zstandard",
}

REPORT = """
import sys
from clew.cli.main import main
status = main(sys.argv[1:])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(status)
"""

BUDGET = 0.100
"""Seconds of CPU, the interpreter's own start included."""


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_nothing_heavy_is_loaded(option: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", REPORT, option], capture_output=True, text=True, check=True
    )
    assert HEAVY & set(ran.stderr.split()) == set()


def test_importing_the_package_loads_no_room() -> None:
    code = "import sys, clew; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name for name in ran.stdout.split() if name.startswith("clew.")} == set()


def test_version_is_the_package_s() -> None:
    ran = subprocess.run([_clew(), "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"clew {importlib.metadata.version('clew')}\n"


def test_version_stays_within_its_cpu_budget() -> None:
    # CPU, not wall, and the best of several: what else the machine does has little say in it.
    best = float("inf")
    for _ in range(20):
        best = min(best, _cpu_seconds([str(_clew()), "--version"]))
        if best <= BUDGET:
            return
    pytest.fail(f"clew --version takes {best * 1000:.0f} ms of CPU, more than {BUDGET * 1000:.0f}")


def _clew() -> Path:
    return Path(sys.executable).with_name("clew")


def _cpu_seconds(words: list[str]) -> float:
    with open(os.devnull, "w") as nowhere:
        pid = os.posix_spawn(
            words[0], words, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 1)]
        )
        _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    return usage.ru_utime + usage.ru_stime
