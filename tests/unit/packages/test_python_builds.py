import os
import subprocess
import sys
import sysconfig
from pathlib import Path

from clew.packages.owners import Packages
from clew.packages.python_builds import find_python
from clew.prov.package_urls import parse_purl

X_Y = f"{sys.version_info.major}.{sys.version_info.minor}"


def test_the_standard_library_belongs_to_python() -> None:
    own = [os.__file__, subprocess.__file__, os.path.realpath(sys.executable)]
    for purl in Packages(None).owners([os.fsencode(path) for path in own]).values():
        found = parse_purl(purl)
        assert found.manager in ("deb", "rpm", "conda", "generic")
        if found.manager == "generic":
            assert found.name == "python"
            assert found.version in (X_Y, sys.version.split()[0])


def make_home(home: Path) -> None:
    library = home / f"lib/python{X_Y}"
    for name in ("os.py", "encodings/__init__.py", "lib-dynload/_x.so"):
        (library / name).parent.mkdir(parents=True, exist_ok=True)
        (library / name).write_text("")
    (home / "bin").mkdir()
    (home / f"bin/python{X_Y}").write_text("")
    header = home / f"include/python{X_Y}/patchlevel.h"
    header.parent.mkdir(parents=True)
    header.write_text('#define PY_MAJOR 3\n#define PY_VERSION      "3.99.1"\n')


def test_a_home_is_known_by_its_shape(tmp_path: Path) -> None:
    make_home(tmp_path)
    (tmp_path / "bin/python3").symlink_to(f"python{X_Y}")
    own = [
        f"lib/python{X_Y}/os.py",
        f"lib/python{X_Y}/__pycache__/os.cpython-399.pyc",
        f"lib/python{X_Y}/lib-dynload/_x.so",
        f"lib/libpython{X_Y}.so.1.0",
        f"bin/python{X_Y}",
        "bin/python3",
    ]
    others = [f"lib/python{X_Y}/site-packages/x.py", "bin/pip", "lib/other.so", "x.py"]
    paths = [os.fsencode(tmp_path / name) for name in own + others]
    owners = Packages(None).owners(paths)
    assert owners == dict.fromkeys(paths[: len(own)], "pkg:generic/python@3.99.1")


def test_a_virtual_environment_is_not_a_python_home() -> None:
    library = Path(sysconfig.get_paths()["purelib"]).parent
    if sys.prefix != sys.base_prefix:
        assert find_python(os.fsencode(library / "anything.py")) is None
    assert find_python(b"/nonexistent/lib/python3.11/os.py") is None
