"""Compile pipelines in the test's own process, which loads the kfp SDK once."""

from __future__ import annotations

import runpy
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch


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
