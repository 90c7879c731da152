"""A package whose docstring lists modules lists all of them, and no others."""

import ast
import re
from pathlib import Path

import pytest

import clew

_ENTRY = re.compile(r"(?m)^    ([a-z_0-9]+(?:, [a-z_0-9]+)*)/?  ")
_OTHERS = "    …"
"""A list with this line names only the modules that need explanation."""


def _packages() -> list[str]:
    """The packages with a list, as paths below `src/clew`."""
    found = []
    for file in sorted(_root().rglob("__init__.py")):
        if _ENTRY.search(_docstring(file)):
            found.append(str(file.parent.relative_to(_root())))
    return found


def _root() -> Path:
    return Path(clew.__file__).parent


def _docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text()), clean=False) or ""


@pytest.mark.parametrize("package", _packages())
def test_a_package_lists_its_modules(package: str) -> None:
    folder = _root() / package
    text = _docstring(folder / "__init__.py")
    entries = [name for match in _ENTRY.finditer(text) for name in match[1].split(", ")]
    modules = {path.stem for path in folder.glob("[a-z]*.py")}
    modules |= {path.parent.name for path in folder.glob("[a-z]*/__init__.py")}
    assert set(entries) <= modules
    if _OTHERS not in text:
        assert modules <= set(re.findall(r"[a-z_0-9]+", text))
