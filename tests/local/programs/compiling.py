"""Compile what the tests run: programs in C and Go, and pipelines in the test's own process."""

import os
import runpy
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import pytest

HERE = Path(__file__).resolve().parent


def compiled(name: str, folder: Path, *flags: str) -> Path:
    """The program `name`.c of this folder, built by gcc; nothing is built twice in one folder."""
    target = folder / f"{name}{''.join(flags)}"
    if not target.exists():
        words = ["gcc", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", *flags]
        subprocess.run([*words, "-o", target, HERE / f"{name}.c"], check=True)
    return target


def go_program(name: str, folder: Path, *flags: str, cgo: bool = False) -> Path:
    """The program `name`.go of this folder, or a skip that says why there is none."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go compiler here (Debian: golang-go)")
    target = folder / f"{name}{'-cgo' if cgo else ''}"
    if not target.exists():
        environment = {
            **os.environ,
            "CGO_ENABLED": "1" if cgo else "0",
            "GOCACHE": os.environ.get("GOCACHE", "/tmp/clew-go-cache"),
            "GO111MODULE": "off",
            "GOTOOLCHAIN": "local",
        }
        words = [go, "build", *flags, "-o", str(target), str(HERE / f"{name}.go")]
        subprocess.run(words, check=True, env=environment)
    return target


@contextmanager
def _as_a_script(path: Path, *words: str | Path) -> Iterator[None]:
    with (
        patch.object(sys, "argv", [str(path), *map(str, words)]),
        patch.object(sys, "path", [str(path.parent), *sys.path]),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


def run_script(path: Path, *words: str | Path) -> None:
    """Run a file that compiles its pipelines itself."""
    with _as_a_script(path, *words):
        runpy.run_path(str(path), run_name="__main__")


def compile_pipeline(source: Path, folder: Path) -> Path:
    """Compile the last pipeline of a file into a folder."""
    from kfp.compiler import Compiler
    from kfp.dsl.graph_component import GraphComponent

    target = folder / f"{source.stem}.yaml"
    with _as_a_script(source):
        named = runpy.run_path(str(source)).values()
        pipelines = [value for value in named if isinstance(value, GraphComponent)]
        Compiler().compile(pipelines[-1], str(target))
    return target
