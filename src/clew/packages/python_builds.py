"""Python builds that no package manager owns (from pyenv or uv), recognised by their files.

The home of a Python is a directory with `bin/pythonX.Y` and a `lib/pythonX.Y` that holds `os.py`
and the `encodings` package. A virtual environment has the first without the second, and a
`pyvenv.cfg` with the version of its Python.
"""

import os
import re
from functools import lru_cache

from clew.packages.owner_index import Package
from clew.prov.package_urls import build_purl

_INSIDE = re.compile(
    rb"(?s)(?P<home>.*)/(?:"
    rb"(?:lib|lib64|include)/python(?P<version>\d+\.\d+)t?/(?!(?:site|dist)-packages/)"
    rb"|bin/python(?P<program>\d+\.\d+)t?(?:-config)?$"
    rb"|lib/libpython(?P<library>\d+\.\d+)t?\.(?:so|a)"
    rb"|lib/libpython(?P<stable>3)\.so$)"
)
_VENV_VERSION = re.compile(rb"^version(?:_info)? *= *(\d+\.\d+\.\d+)", re.MULTILINE)
_PATCH = re.compile(rb'^#define\s+PY_VERSION\s+"([^"]+)"', re.MULTILINE)


def find_python(path: bytes) -> Package | None:
    """The Python that a path is part of: its standard library, headers, program or library."""
    if path.endswith(b"/pyvenv.cfg"):
        return _venv(path)
    match = _INSIDE.match(path)
    if match is None:
        return None
    version = match["version"] or match["program"] or match["library"]
    return _home(match["home"], version) if version else None


def _venv(path: bytes) -> Package | None:
    try:
        with open(path, "rb") as file:
            version = _VENV_VERSION.search(file.read(4096))
    except OSError:
        return None
    return Package(build_purl("generic", "python", version[1].decode()), None) if version else None


@lru_cache(maxsize=64)
def _home(home: bytes, version: bytes) -> Package | None:
    library = home + b"/lib/python" + version
    needed = (
        library + b"/os.py",
        library + b"/encodings/__init__.py",
        home + b"/bin/python" + version,
    )
    if not all(map(os.path.isfile, needed)):
        return None
    try:
        with open(home + b"/include/python" + version + b"/patchlevel.h", "rb") as file:
            exact = _PATCH.search(file.read())
    except OSError:
        exact = None
    return Package(build_purl("generic", "python", (exact[1] if exact else version).decode()), None)
