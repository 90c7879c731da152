"""An incremental run of any notebook leaves the variables and outputs of a full run.

The notebooks are run in this process, by the tracker of the kernel and the comparison of the memo;
files are added in `tests/local/test_cmd_notebook.py`, where a real kernel runs them.
"""

import contextlib
import io
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clew.notebooks
from clew.notebooks.cell_memo import find_difference
from clew.notebooks.messages import Begin

sys.path.append(str(Path(clew.notebooks.__file__).parent))  # as the program of the kernel does

from clew_kernel.cell_tracker import CellTracker

HELPERS = """
import random
random.seed(0)
def show(*values):
    return repr(values)
"""

NAMES = st.sampled_from("abcd")
STATEMENTS = st.one_of(
    st.builds("{} = {}".format, NAMES, st.integers(0, 3)),
    st.builds("{} = [{}, {}]".format, NAMES, st.integers(0, 3), st.integers(0, 3)),
    st.builds("{} = {}".format, NAMES, NAMES),
    st.builds("{} = [{}, {}]".format, NAMES, NAMES, NAMES),
    st.builds("{} = {{'k': {}}}".format, NAMES, NAMES),
    st.builds("if isinstance({0}, list): {0}.append({1})".format, NAMES, st.integers(0, 3)),
    st.builds("if isinstance({0}, list): {0}.append({1})".format, NAMES, NAMES),
    st.builds("if isinstance({0}, list) and {0}: {1} = {0}[0]".format, NAMES, NAMES),
    st.builds("if isinstance({0}, dict): {0}['n'] = {1}".format, NAMES, NAMES),
    st.builds("if isinstance({0}, list): {0} += [{1}]".format, NAMES, NAMES),
    st.builds("{} = random.randrange(100)".format, NAMES),
    st.builds("random.seed({})".format, st.integers(0, 3)),
    st.builds("def f(v=0): return [v, {}]".format, NAMES),
    st.builds("def f(v=0):\n    global {0}\n    {0} = v\n    return {0}".format, NAMES),
    st.builds("{} = f({})".format, NAMES, NAMES),
    st.builds("class C:\n    x = {}\n    def up(self): type(self).x = {}".format, NAMES, NAMES),
    st.builds("{} = C()".format, NAMES),
    st.builds("if hasattr({0}, 'up'): {0}.up()".format, NAMES),
    st.builds("{} = (i for i in [1, 2])".format, NAMES),
    st.builds("{} = lambda: {}".format, NAMES, NAMES),
    st.builds("if callable({0}): {1} = {0}".format, NAMES, NAMES),
    st.builds("import numpy as np\n{} = np.arange(4)".format, NAMES),
    st.builds("{} = {}[1:] if isinstance({}, np.ndarray) else 0".format, NAMES, NAMES, NAMES),
    st.builds("if isinstance({0}, np.ndarray) and {0}.size: {0}[0] = {1}".format, NAMES,
              st.integers(5, 9)),
    st.builds("del {}".format, NAMES),
    st.builds("globals()['{}'] = {}".format, NAMES, NAMES),
    st.builds("print(show({}, {}))".format, NAMES, NAMES),
)  # fmt: skip
CELLS = st.lists(STATEMENTS, min_size=1, max_size=3).map("\n".join)
NOTEBOOKS = st.lists(CELLS, min_size=2, max_size=6)


class Notebook:
    """Runs the cells of notebooks, and reuses what it knows of earlier runs if it is told to."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._memo: list[tuple[str, dict[str, Any], str]] = []

    def run(self, cells: list[str], *, incremental: bool) -> tuple[list[str], dict[str, Any]]:
        """What each cell shows (without what it is to ignore), and the variables afterwards."""
        namespace: dict[str, Any] = {"__name__": "__main__", "Out": {}}
        exec(HELPERS, namespace)
        tracker = CellTracker(namespace)
        shown = []
        for code in cells:
            cell = tracker.begin(code)
            assert cell is not None
            question = cell.question()
            found = self._find(question, tracker) if incremental else None
            shown.append(found if found is not None else self._run(namespace, code, cell))
        left = {n: v for n, v in namespace.items() if n in "abcd" or n == "C"}
        return shown, left

    def _find(self, question: dict[str, Any], tracker: CellTracker) -> str | None:
        begin = msgspec.convert({**question, "code": ""}, Begin)
        for key, document, shown in reversed(self._memo):
            if begin.never is not None or key != begin.key or document["unsaved"] is not None:
                continue
            if find_difference(document, begin) is None:
                path = f"{self._folder}/{document['cell']}.variables"
                assert tracker.restore(path, document) is None
                return shown
        return None

    def _run(self, namespace: dict[str, Any], code: str, cell: Any) -> str:
        output = io.StringIO()
        cell.hide_assigned()
        try:
            with contextlib.redirect_stdout(output):
                exec(compile(code, "<cell>", "exec"), namespace)
            cell.show_assigned()
        except Exception as error:
            cell.show_assigned()
            cell.fail()
            return f"{output.getvalue()}{type(error).__name__}"
        question = cell.question()
        document = {
            **cell.end(self._folder),
            "reads": question["reads"],
            "before": question["process"],
            "cell": cell.uid,
        }
        self._memo.append((cell.key, document, output.getvalue()))
        return output.getvalue()


def describe(values: dict[str, Any]) -> str:
    """Values with their aliasing, where addresses are numbers in the order in which they occur."""
    numbers: dict[int, int] = {}

    def walk(value: Any) -> Any:
        if isinstance(value, int | str):
            return value
        if id(value) in numbers:
            return f"#{numbers[id(value)]}"
        number = numbers[id(value)] = len(numbers)
        parts: Any = None
        if isinstance(value, list):
            parts = [walk(one) for one in value]
        elif isinstance(value, dict):
            parts = {key: walk(one) for key, one in value.items()}
        elif isinstance(value, type):
            parts = walk(value.x)
        elif hasattr(value, "tolist"):
            parts = value.tolist()
        elif hasattr(value, "up"):
            parts = walk(type(value))
        return number, type(value).__name__, parts

    return repr([(name, walk(values[name])) for name in sorted(values)])


def check(cells: list[str], edited: list[str]) -> None:
    """Run a notebook, then an edited one incrementally: as a full run in a new process would be."""
    state = random.getstate()
    try:
        with tempfile.TemporaryDirectory() as folder:
            notebook = Notebook(folder)
            notebook.run(cells, incremental=False)
            shown, left = notebook.run(edited, incremental=True)
            full_shown, full_left = Notebook(folder).run(edited, incremental=False)
    finally:
        random.setstate(state)
    hide = " at 0x"
    for one, other in zip(shown, full_shown, strict=True):
        assert one == other or hide in one
    assert describe(left) == describe(full_left)


@given(NOTEBOOKS, st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_incremental_run_equals_a_full_run(cells: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(cells) - 1))
    check(cells, [*cells[:at], data.draw(CELLS), *cells[at + 1 :]])


def test_a_failed_cell_may_have_used_random_numbers() -> None:
    draw = "a = random.randrange(100)"
    check(["a = 0", draw], ["a = 0", "a = 0", f"{draw}\na = C()", draw])


@pytest.mark.heavy
@given(NOTEBOOKS, NOTEBOOKS)
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_incremental_runs_equal_full_runs(cells: list[str], others: list[str]) -> None:
    check(cells, [*cells[: len(cells) // 2], *others, *cells[len(cells) // 2 :]])
