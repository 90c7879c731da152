"""What holds whichever manager answers; conda's records are written here as conda writes them."""

import json
import os
from pathlib import Path

from clew.packages.owners import Packages


def make_environment(prefix: Path) -> Path:
    meta = prefix / "conda-meta"
    meta.mkdir(parents=True)
    (meta / "history").write_text("==> now <==\n")
    site = "lib/python3.11/site-packages"
    channel = "https://conda.anaconda.org/conda-forge"
    told = {
        "numpy": ([f"{site}/numpy/__init__.py", f"{site}/numpy-1.26.dist-info/RECORD"], "numpy"),
        "libblas": (["lib/libblas.so.3"], "None"),
    }
    for name, (files, spec) in told.items():
        record = {
            "name": name,
            "version": "1.26",
            "build": "py_0",
            "channel": channel,
            "files": files,
            "requested_spec": spec,
        }
        (meta / f"{name}-1.26-py_0.json").write_text(json.dumps(record))
        for file in files:
            (prefix / file).parent.mkdir(parents=True, exist_ok=True)
            (prefix / file).write_text("")
    (meta / "damaged-1-0.json").write_text("{")
    info = prefix / site / "pure-2.dist-info"
    info.mkdir()
    (info / "RECORD").write_text("pure.py,,\n")
    (info / "INSTALLER").write_text("pip\n")
    return prefix


def test_conda_owns_its_files_and_pip_those_it_added(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path / "env")
    site = prefix / "lib/python3.11/site-packages"
    numpy = os.fsencode(site / "numpy/__init__.py")
    compiled = os.fsencode(site / "numpy/__pycache__/__init__.cpython-311.pyc")
    blas = os.fsencode(prefix / "lib/libblas.so.3")
    pure = os.fsencode(site / "pure.py")
    packages = Packages(None)
    qualifiers = "?build=py_0&channel=conda-forge"
    assert packages.owners([numpy, compiled, blas, pure]) == {
        numpy: f"pkg:conda/numpy@1.26{qualifiers}",
        compiled: f"pkg:conda/numpy@1.26{qualifiers}",
        blas: f"pkg:conda/libblas@1.26{qualifiers}",
        pure: "pkg:pypi/pure@2",
    }
    assert packages.facet() == {
        f"pkg:conda/libblas@1.26{qualifiers}": {"requested": False},
        f"pkg:conda/numpy@1.26{qualifiers}": {"requested": True},
        "pkg:pypi/pure@2": {"requested": False},
    }


def test_a_link_into_an_environment_leads_to_its_owner(tmp_path: Path) -> None:
    prefix = make_environment(tmp_path / "env")
    directory = tmp_path / "linked"
    directory.symlink_to(prefix)
    link = tmp_path / "blas"
    link.symlink_to(prefix / "lib/libblas.so.3")
    python = os.fsencode(directory / "lib/python3.11/site-packages/numpy/__init__.py")
    owners = Packages(None).owners([python, os.fsencode(link)])
    assert [purl.split("@")[0] for purl in owners.values()] == [
        "pkg:conda/numpy",
        "pkg:conda/libblas",
    ]


def test_odd_paths_have_no_owner(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    odd = [
        os.fsencode(loop),
        os.fsencode(loop / "x.py"),
        os.fsencode(tmp_path) + b"/\xff\xfe.py",
        b"/" + b"a/" * 2000 + b"x.py",
        b"/" + b"x" * 300 + b".py",
        b"/",
        b"/proc/self/exe",
        b"/dev/null",
    ]
    assert Packages(None).owners(odd) == {}
