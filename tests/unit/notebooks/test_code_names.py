"""What the code of a cell says: its key, and the names that it can read."""

import sys
from pathlib import Path

import pytest

import clew.notebooks

sys.path.append(str(Path(clew.notebooks.__file__).parent))  # as the program of the kernel does

from clew_kernel.code_names import find_names, normalize


def test_comments_and_layout_do_not_matter() -> None:
    assert normalize("x = 1  # one\n\ny = (x +\n 2)") == normalize("x=1\ny = x+2 # two")
    assert normalize("x = 1") != normalize("x = 2")
    assert normalize("x = (") is None


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("y = x + 1", {"x"}),
        ("x = 1\ny = x", set()),
        ("for i in range(3): total += i", {"range", "total"}),
        ("i = 0\nif a:\n  b = i\nprint(b)", {"a", "b", "print"}),
        ("if a:\n  b = 1\nelse:\n  b = 2\nb", {"a"}),
        ("while a: b = 1\nb", {"a", "b"}),
        ("with f() as g: h(g)", {"f", "h"}),
        ("x[0] = y", {"x", "y"}),
        ("x.a = 1", {"x"}),
        ("def f(): return g + f()", {"g"}),
        ("class A(B):\n  c = D", {"B", "c", "D"}),
        ("import numpy as np\nnp.zeros(n)", {"n"}),
        ("del x", {"x"}),
        ("df.query('a > @limit')", {"df", "a", "limit"}),
        ("try: a = 1\nexcept E: pass\na", {"a", "E"}),
        ("a, *b = c\nb", {"c"}),
        ("lambda: later", {"later"}),
    ],
)
def test_names_that_can_be_read(code: str, names: set[str]) -> None:
    found = find_names(code)
    assert found.names == names
    assert found.dynamic is None


@pytest.mark.parametrize(
    "code",
    [
        "globals()['x']",
        "eval('x')",
        "exec(text)",
        "from os import *",
        "_",
        "Out[3]",
        "import sys\nsys._getframe(1)",
        "get_ipython().user_ns",
        "get_ipython().run_line_magic('who', '')",
    ],
)
def test_code_that_can_read_any_variable(code: str) -> None:
    assert find_names(code).dynamic is not None


def test_magics_read_what_their_text_names() -> None:
    found = find_names("get_ipython().run_cell_magic('bash', '', 'echo $name')")
    assert found.dynamic is None
    assert "name" in found.names
