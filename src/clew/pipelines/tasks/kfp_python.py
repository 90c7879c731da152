"""Which Python runs components and compiles pipelines: one that has the kfp SDK."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from clew.errors import NotFound, UsageError

_HAS_KFP = "import sys, importlib.util as i; sys.exit(i.find_spec('kfp') is None)"

_COMPILE = """
import importlib.util, os, sys, warnings
warnings.simplefilter("ignore")
source, target = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(source)))
spec = importlib.util.spec_from_file_location("clew_compiled_pipeline", source)
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
from kfp import compiler
from kfp.dsl.graph_component import GraphComponent
found = {
    name: value for name, value in vars(module).items()
    if isinstance(value, GraphComponent)
    and getattr(value.pipeline_func, "__module__", None) == spec.name
}
used = {name for value in found.values() for name in value.pipeline_func.__code__.co_names}
outer = {name: value for name, value in found.items() if name not in used}
if len(outer) != 1:
    sys.exit("it has %d pipelines that no other one uses, not one: %s"
             % (len(outer), ", ".join(sorted(outer)) or "none"))
compiler.Compiler().compile(*outer.values(), target)
"""
"""A pipeline that another one of the file uses is a part of it."""


class Search:
    """Looks for the Python that runs components, in the background: the caller's `python3` if it
    has the SDK, as components expect; else Clew's own."""

    def __init__(self, hint: Path | None = None) -> None:
        """`hint`: a file that keeps the last answer."""
        self._hint = hint
        found = (shutil.which("python3"), sys.executable)
        self._candidates = list(dict.fromkeys(filter(None, found)))
        self._asked = {
            python: subprocess.Popen(
                [python, "-c", _HAS_KFP],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for python in self._candidates
            if os.path.dirname(python) != os.path.dirname(sys.executable)
        }

    def guess(self) -> str:
        """Probably the answer, at once."""
        with suppress(OSError):
            if self._hint and (last := self._hint.read_text()) in self._candidates:
                return last
        return self._candidates[0]

    def result(self) -> str:
        for python in self._candidates:
            if python in self._asked:
                has_kfp = self._asked[python].wait() == 0
            else:
                has_kfp = importlib.util.find_spec("kfp") is not None
            if has_kfp:
                if self._hint and python != self.guess():
                    with suppress(OSError):
                        self._hint.write_text(python)
                return python
        raise NotFound(
            "no python3 here has the kfp SDK, which runs components", hint="pip install kfp"
        )

    def close(self) -> None:
        for asked in self._asked.values():
            asked.kill()
            asked.wait()


def interpreter() -> str:
    """The Python that runs components."""
    with closing(Search()) as search:
        return search.result()


def compiled(source: Path, python: str) -> str:
    """The YAML of the one pipeline that a Python file defines."""
    if not source.is_file():
        raise NotFound(f"no file {source}", hint="clew pipeline run FILE.yaml|FILE.py")
    with tempfile.TemporaryDirectory(prefix="clew-pipeline-") as folder:
        target = Path(folder) / "pipeline.yaml"
        ran = subprocess.run(
            [python, "-c", _COMPILE, str(source), str(target)],
            check=False,
            capture_output=True,
            text=True,
        )
        if ran.returncode:
            last = (ran.stderr.strip().splitlines() or ["it failed"])[-1]
            raise UsageError(f"{source} cannot be compiled: {last}", hint=f"{python} {source}")
        return target.read_text()
