"""pip itself installs here, and says what it installed."""

import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from clew.packages import pypi
from clew.packages.owners import Packages
from clew.prov.package_urls import parse_purl

WHEEL = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

PROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""

BACKEND = """\
# Builds an editable wheel in the way of the common backends, without needing one of them.
import pathlib, zipfile
def build_editable(directory, settings=None, metadata=None):
    info = "our_code-0.5.dist-info"
    files = {
        "__editable__.our_code-0.5.pth": str(pathlib.Path.cwd()),
        f"{info}/METADATA": "Metadata-Version: 2.1\\nName: Our.Code\\nVersion: 0.5\\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\\n" for name in [*files, f"{info}/RECORD"])
    name = "our_code-0.5-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(directory) / name, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name
build_wheel = build_editable
"""


def make_wheel(directory: Path, name: str, version: str, needs: str = "") -> Path:
    """A wheel with a module, a data file with a comma in its name, a script and a directory."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{name}.py": "def main(): pass\n",
        f"{name}_data/a,b.txt": "x\n",
        f"{name}_data/ümlaut.txt": "x\n",
        f"{info}/METADATA": metadata + (f"Requires-Dist: {needs}\n" if needs else ""),
        f"{info}/WHEEL": WHEEL,
        f"{info}/entry_points.txt": f"[console_scripts]\n{name}-run = {name}:main\n",
    }
    rows = "".join(f'"{path}",,\n' if "," in path else f"{path},,\n" for path in files)
    path = directory / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for inner, text in {**files, f"{info}/RECORD": rows}.items():
            wheel.writestr(inner, text)
    return path


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with `asked` (from an index), `along` (its need), `direct` (a file), and
    `our-code` (editable)."""
    top = tmp_path_factory.mktemp("pypi")
    wheels = top / "wheels"
    wheels.mkdir()
    make_wheel(wheels, "asked", "1.0", needs="along")
    make_wheel(wheels, "along", "2.0rc1")
    direct = make_wheel(top, "direct", "3.0")
    source = top / "source"
    (source / "our_code").mkdir(parents=True)
    (source / "our_code/__init__.py").write_text("import asked\n")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "backend.py").write_text(BACKEND)
    made = top / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made)], check=True)
    run_pip(made, "install", "--no-index", "--pre", "--find-links", str(wheels), "asked")
    run_pip(made, "install", "--no-index", str(direct))
    run_pip(made, "install", "--no-index", "--no-build-isolation", "-e", str(source))
    return made


def run_pip(venv: Path, *words: str) -> str:
    command = [sys.executable, "-m", "pip", "--python", str(venv / "bin/python"), *words]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def site_of(venv: Path) -> Path:
    return next(venv.glob("lib/python3*/site-packages"))


def files_pip_shows(venv: Path, name: str) -> list[bytes]:
    lines = run_pip(venv, "show", "-f", name).partition("Files:\n")[2].splitlines()
    return [os.fsencode(os.path.normpath(site_of(venv) / line.strip())) for line in lines]


@pytest.mark.parametrize(
    ("name", "purl", "requested"),
    [
        ("asked", "pkg:pypi/asked@1.0", True),
        ("along", "pkg:pypi/along@2.0rc1", False),
    ],
)
def test_what_pip_shows_is_owned(venv: Path, name: str, purl: str, requested: bool) -> None:
    shown = files_pip_shows(venv, name)
    assert os.fsencode(venv / f"bin/{name}-run") in shown
    assert os.fsencode(site_of(venv) / f"{name}_data/a,b.txt") in shown
    packages = Packages(None)
    assert packages.owners(shown) == dict.fromkeys(shown, purl)
    assert packages.requested() == {purl: requested}


def test_data_alone_is_owned_too(venv: Path) -> None:
    path = os.fsencode(site_of(venv) / "asked_data/ümlaut.txt")
    assert Packages(None).owners([path]) == {path: "pkg:pypi/asked@1.0"}


def test_a_package_names_its_origin(venv: Path) -> None:
    path = os.fsencode(site_of(venv) / "direct.py")
    found = parse_purl(Packages(None).owners([path])[path])
    assert (found.name, found.version) == ("direct", "3.0")
    assert found.qualifiers["download_url"].endswith("/direct-3.0-py3-none-any.whl")


def test_an_editable_install_owns_what_the_installer_wrote_and_no_source(venv: Path) -> None:
    source = venv.parent / "source"
    ours = [os.fsencode(path) for path in source.rglob("*") if path.is_file()]
    written = [os.fsencode(path) for path in site_of(venv).glob("*editable*")]
    written += [os.fsencode(p) for p in site_of(venv).glob("our_code*/METADATA")]
    owners = Packages(None).owners(ours + written)
    assert ours
    assert written
    assert set(owners) == set(written)
    assert {parse_purl(owner).name for owner in owners.values()} == {"our-code"}


def test_the_settings_of_a_virtual_environment_belong_to_its_python(venv: Path) -> None:
    path = os.fsencode(venv / "pyvenv.cfg")
    version = platform.python_version()
    assert Packages(None).owners([path]) == {path: f"pkg:generic/python@{version}"}


def test_a_compiled_file_belongs_to_its_source(venv: Path) -> None:
    site = site_of(venv)
    (site / "mine.py").write_text("")
    paths = [
        os.fsencode(site / "__pycache__" / name)
        for name in ("asked.cpython-399.pyc", "asked.pypy310.opt-2.pyc", "mine.cpython-399.pyc")
    ]
    assert Packages(None).owners(paths) == dict.fromkeys(paths[:2], "pkg:pypi/asked@1.0")


def test_a_distribution_carried_inside_another_is_the_others(tmp_path: Path) -> None:
    site = tmp_path / "anywhere"
    inner = site / "outer/_vendor/inner-1.dist-info"
    outer = site / "outer-2.dist-info"
    inner.mkdir(parents=True)
    outer.mkdir()
    (site / "outer/_vendor/inner.py").write_text("")
    (inner / "RECORD").write_text("inner.py,,\nextra.py,,\n")
    (outer / "RECORD").write_text("outer/_vendor/inner.py,,\n")
    paths = [os.fsencode(site / "outer/_vendor" / name) for name in ("inner.py", "extra.py")]
    packages = Packages(None)
    assert packages.owners(paths) == {
        paths[0]: "pkg:pypi/outer@2",
        paths[1]: "pkg:pypi/inner@1",
    }
    assert set(packages.requested().values()) == {None}


def test_origins_have_no_passwords(tmp_path: Path) -> None:
    info = tmp_path / "x-1.dist-info"
    info.mkdir()
    (info / "direct_url.json").write_text(
        '{"url": "https://me:pw@h/x.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}'
    )
    [(package, _)] = pypi.read_packages(os.fsencode(tmp_path))
    assert parse_purl(package.purl).qualifiers == {"vcs_url": "git+https://***@h/x.git@abc"}
    (info / "direct_url.json").write_text("[1]")
    [(package, _)] = pypi.read_packages(os.fsencode(tmp_path))
    assert package.purl == "pkg:pypi/x@1"


def test_a_new_install_is_seen_through_the_cache(venv: Path, tmp_path: Path) -> None:
    site = site_of(venv)
    path = os.fsencode(site / "late.py")
    assert Packages(tmp_path).owners([path]) == {}
    run_pip(venv, "install", "--no-index", str(make_wheel(tmp_path, "late", "1")))
    [purl] = Packages(tmp_path).owners([path]).values()
    assert parse_purl(purl).name == "late"
