import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.prov import file_classes
from clew.prov.file_classes import Class, classify


@pytest.mark.parametrize(
    ("path", "package", "found"),
    [
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "pkg:deb/debian/libc6@2.36", "system"),
        ("/usr/lib/python3/dist-packages/six.py", "pkg:deb/debian/python3-six@1", "system"),
        ("/opt/tool/config.yaml", "pkg:rpm/fedora/tool@1", "system"),
        ("/v/lib/python3.11/site-packages/x/data.csv", "pkg:pypi/x@1", "package"),
        ("/c/lib/python3.11/site-packages/x.py", "pkg:conda/x@1", "package"),
        ("/c/lib/libmkl.so", "pkg:conda/mkl@1", "system"),
        ("/home/me/.pyenv/versions/3.11/lib/python3.11/os.py", "pkg:generic/python@3", "system"),
    ],
)
def test_the_owner_decides(path: str, package: str, found: str) -> None:
    assert classify(path.encode(), package) == found
    assert classify(path.encode(), package, executable=True) == found


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/etc/ld.so.cache", "system"),
        ("/proc/cpuinfo", "system"),
        ("/dev/random", "system"),
        ("/dev/shm/shared.csv", "data"),
        ("/usr/lib/locale/locale-archive", "system"),
        ("/home/me/train.py", "source"),
        ("/home/me/__pycache__/train.cpython-311.pyc", "source"),
        ("/home/me/Makefile", "source"),
        ("/image/lib/python3.11/site-packages/x/data.csv", "package"),
        ("/home/me/analysis.R", "source"),
        ("/home/me/explore.ipynb", "source"),
        ("/home/me/libfast.so.1.2", "source"),
        ("/home/me/config.yaml", "configuration"),
        ("/home/me/pyproject.toml", "configuration"),
        ("/home/me/requirements.txt", "configuration"),
        ("/home/me/requirements-dev.txt", "configuration"),
        ("/home/me/model_config.json", "configuration"),
        ("/home/me/.env", "configuration"),
        ("/home/me/.bashrc", "configuration"),
        ("/home/me/.gitignore", "configuration"),
        ("/home/me/.config/tool/thing", "configuration"),
        ("/home/me/data.csv", "data"),
        ("/home/me/annotations.json", "data"),
        ("/home/me/model.pkl", "data"),
        ("/home/me/notes", "data"),
        ("/home/me/r", "data"),
        ("/data/usr/lib/x.bin", "data"),
    ],
)
def test_files_without_a_package_are_classified_by_name(path: str, found: str) -> None:
    assert classify(path.encode(), None) == found


def test_an_executable_without_a_suffix_is_a_program() -> None:
    assert classify(b"/home/me/bin/simulate", None, executable=True) == "source"
    assert classify(b"/home/me/data.csv", None, executable=True) == "data"
    assert classify(b"/home/me/conf.ini", None, executable=True) == "configuration"


@given(st.binary(max_size=20), st.none() | st.text(max_size=20), st.booleans())
def test_every_file_has_a_class(path: bytes, package: str | None, executable: bool) -> None:
    assert classify(b"/" + path, package, executable=executable) in get_args(Class)


def test_the_documentation_names_every_suffix_and_name() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/files.md").read_bytes()
    listed = set(re.findall(rb"[^\s`|,()]+", page))
    known = (
        file_classes._SOURCE
        | file_classes._SOURCE_NAMES
        | file_classes._CONFIGURATION
        | file_classes._CONFIGURATION_NAMES
        | file_classes._CONFIGURATION_WORDS
        | set(file_classes._SYSTEM)
    )
    assert known <= listed, sorted(known - listed)
