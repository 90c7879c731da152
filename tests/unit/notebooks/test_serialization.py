"""Variables as bytes and back: shared objects stay shared, and equal values have equal versions."""

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clew.notebooks

sys.path.append(str(Path(clew.notebooks.__file__).parent))  # as the program of the kernel does

from clew_kernel.serialization import Serializer, read_saved
from clew_kernel.unsavable import Unsavable


def run(code: str) -> dict[str, Any]:
    """The variables after this code, as in the notebook of a kernel."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "<cell>", "exec"), namespace)
    return namespace


def variables(namespace: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: namespace[name] for name in names}


def test_shared_objects_stay_shared(tmp_path: Path) -> None:
    namespace = run("a = [1]; b = {'a': a}; c = (a, b)")
    serializer = Serializer(namespace)
    serializer.save(variables(namespace, "a", "b", "c")).write(str(tmp_path / "saved"))
    loaded = serializer.load(read_saved(str(tmp_path / "saved")))
    assert loaded["b"]["a"] is loaded["a"] is loaded["c"][0]
    loaded["a"].append(2)
    assert namespace["a"] == [1]


def test_views_of_an_array_stay_views(tmp_path: Path) -> None:
    namespace = run(
        "import numpy as np\na = np.arange(12.).reshape(3, 4)\nb = a[::-1, 1:3]\nc = a.T"
    )
    serializer = Serializer(namespace)
    serializer.save(variables(namespace, "a", "b", "c")).write(str(tmp_path / "saved"))
    loaded = serializer.load(read_saved(str(tmp_path / "saved")))
    loaded["a"][2, 1] = 100.0
    assert loaded["b"][0, 0] == 100.0
    assert loaded["c"][1, 2] == 100.0
    assert np.array_equal(loaded["b"][1], [5.0, 6.0])


def test_functions_look_names_up_in_the_notebook() -> None:
    namespace = run("x = 1\ndef f(): return x\ndef g(n): return n and g(n - 1)")
    serializer = Serializer(namespace)
    loaded = serializer.load(serializer.save(variables(namespace, "f", "g")))
    namespace["x"] = 2
    assert loaded["f"]() == 2
    assert loaded["g"](3) == 0


def test_closures_share_their_cells() -> None:
    namespace = run(
        "def counter():\n"
        "    n = 0\n"
        "    def up():\n        nonlocal n\n        n += 1\n        return n\n"
        "    def read(): return n\n"
        "    return up, read\n"
        "up, read = counter()\nup()"
    )
    serializer = Serializer(namespace)
    loaded = serializer.load(serializer.save(variables(namespace, "up", "read")))
    assert loaded["up"]() == 2 == loaded["read"]()
    assert namespace["read"]() == 1


def test_classes_and_their_instances() -> None:
    namespace = run(
        "class A:\n    count = 0\n    def __init__(self): self.own = self\n"
        "    def up(self): type(self).count += 1\n"
        "a = A(); b = A()"
    )
    serializer = Serializer(namespace)
    loaded = serializer.load(serializer.save(variables(namespace, "A", "a", "b")))
    assert type(loaded["a"]) is type(loaded["b"]) is loaded["A"]
    assert loaded["a"].own is loaded["a"]
    loaded["a"].up()
    assert (loaded["A"].count, namespace["A"].count) == (1, 0)


CODES = [
    "v = [1, 'a', 'a', {'a': ('a', 2.5)}]",
    "class A:\n    def f(self): return 'x'\nv = A(); v.x = 'x'; v.y = ['x', v]",
    "import numpy as np\nv = {'a': np.arange(5), 'b': np.zeros((2, 3)).T}",
    "import pandas as pd\nv = pd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})",
    "def v(a, b='b', *, c=('c', 'b')):\n    'text'\n    return [a for a in b]",
    "v = {1, 2, (3, 4)}",
    "import random\nv = random.Random(3)",
]


@pytest.mark.parametrize("code", CODES)
def test_a_copy_has_the_version_of_the_original(code: str) -> None:
    namespace = run(code)
    serializer = Serializer(namespace)
    saved = serializer.save(variables(namespace, "v"))
    version = serializer.version(saved)
    other = run(code)
    again = Serializer(other)
    assert again.version(again.save(variables(other, "v"))) == version
    copy = serializer.load(saved)
    fresh = Serializer(namespace)
    assert fresh.version(fresh.save(copy)) == version


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("v = (i for i in [1])", "generator"),
        ("v = set(range(200))\nfor n in {*v} - {3, 130}: v.remove(n)", "order of a set"),
        ("v = open('/dev/null')", "open file"),
        ("import threading\nv = threading.Lock()", "lock"),
        ("import functools\n@functools.cache\ndef v(n): return n", "v by its name"),
    ],
)
def test_what_cannot_be_saved_says_why(code: str, why: str) -> None:
    namespace = run(code)
    serializer = Serializer(namespace)
    sys.modules["__main__"].v = namespace["v"]  # type: ignore[attr-defined]
    with pytest.raises(Unsavable, match=why):
        serializer.version(serializer.save(variables(namespace, "v")))
    if isinstance(namespace["v"], io.IOBase):
        namespace["v"].close()


def test_a_closed_file_is_closed_afterwards() -> None:
    namespace = run("with open('/dev/null') as v: pass")
    serializer = Serializer(namespace)
    loaded = serializer.load(serializer.save(variables(namespace, "v")))
    assert loaded["v"].closed
    assert loaded["v"].name == "/dev/null"
