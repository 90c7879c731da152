"""Which Python runs components: the answer is kept until something it came from changes."""

import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from clew.pipelines.tasks.kfp_interpreter import InterpreterSearch, find_interpreter


@pytest.fixture
def python3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `python3` as version managers install it: a script that starts what a file names."""
    program = tmp_path / "bin" / "python3"
    program.parent.mkdir()
    (tmp_path / "version").write_text("false\n")
    program.write_text(
        f'#!/bin/sh\nread -r which < {tmp_path}/version\nexec $which "$@"\n',
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return program


def test_another_python_is_checked_again(tmp_path: Path, python3: Path) -> None:
    cache = tmp_path / "cache"
    assert find_interpreter(cache) == sys.executable
    (tmp_path / "version").write_text(f"{sys.executable}\n")
    assert find_interpreter(cache) == os.fspath(python3)


def test_the_guess_is_the_last_result(tmp_path: Path, python3: Path) -> None:
    cache = tmp_path / "cache"
    for expected in (os.fspath(python3), sys.executable):
        with closing(InterpreterSearch(cache)) as search:
            assert search.guess() == expected
            assert search.result() == sys.executable


def test_a_valid_cached_result_is_used(tmp_path: Path, python3: Path) -> None:
    cache = tmp_path / "cache"
    find_interpreter(cache)
    [kept] = (cache / "kfp-pythons").iterdir()
    written = kept.stat().st_mtime_ns
    assert find_interpreter(cache) == sys.executable
    assert list((cache / "kfp-pythons").iterdir()) == [kept]
    assert kept.stat().st_mtime_ns == written


def test_a_damaged_cache_is_replaced(tmp_path: Path, python3: Path) -> None:
    cache = tmp_path / "cache"
    find_interpreter(cache)
    [kept] = (cache / "kfp-pythons").iterdir()
    kept.write_bytes(b"\x00damaged")
    assert find_interpreter(cache) == sys.executable


def test_few_results_are_cached(
    tmp_path: Path, python3: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    for number in range(18):
        monkeypatch.setenv("NUMBER", str(number))
        find_interpreter(cache)
    assert len(list((cache / "kfp-pythons").iterdir())) == 16
