"""A real package, built by rpmbuild and entered into a real database of its own."""

import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from clew.packages import rpm
from clew.packages.owners import Packages

SPEC = """\
Name: clew-sample
Version: 1.2~rc1
Release: 3
{epoch}
Summary: A sample
License: none
BuildArch: noarch
%description
A sample.
%install
mkdir -p %{{buildroot}}/opt/{directory}
echo x > "%{{buildroot}}/opt/{directory}/a file.txt"
%files
/opt/{directory}
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("rpmbuild") is None:
        pytest.skip("needs rpmbuild")
    top = tmp_path_factory.mktemp("rpm")
    for directory, epoch in (("one", "Epoch: 4"), ("two", "Provides: nothing")):
        spec = top / f"{directory}.spec"
        text = SPEC.format(directory=directory, epoch=epoch)
        spec.write_text(text.replace("clew-sample", f"clew-{directory}"))
        define = f"_topdir {top}/build"
        build = ["rpmbuild", "-bb", "--quiet", "--define", define, str(spec)]
        subprocess.run(build, check=True, capture_output=True)
    made = list(top.rglob("*.noarch.rpm"))
    assert len(made) == 2
    enter = ["rpm", f"--dbpath={top}/db", "-i", "--justdb", "--nodeps", *map(str, made)]
    subprocess.run(enter, check=True, capture_output=True)
    return top / "db"


def test_what_rpm_lists_is_owned(database: Path, tmp_path: Path) -> None:
    packages = Packages(tmp_path / "cache", root=tmp_path, rpm_database=database)
    paths = [b"/opt/one/a file.txt", b"/opt/two/a file.txt", b"/opt/three"]
    assert packages.owners(paths) == {
        paths[0]: "pkg:rpm/clew-one@1.2~rc1-3?arch=noarch&epoch=4",
        paths[1]: "pkg:rpm/clew-two@1.2~rc1-3?arch=noarch",
    }
    assert set(packages.requested().values()) == {None}


def test_newer_dnf_lists_requested_packages(database: Path, tmp_path: Path) -> None:
    table = tmp_path / "usr/lib/sysimage/libdnf5/packages.toml"
    table.parent.mkdir(parents=True)
    table.write_text(
        'version = "1.0"\n[packages]\n'
        '[packages."clew-one.noarch"]\nreason = "User"\n'
        '[packages."clew-two.noarch"]\nreason = "Dependency"\n'
    )
    found = {p.purl.split("@")[0]: p.requested for p, _ in rpm.read_packages(tmp_path, database)}
    assert found == {"pkg:rpm/clew-one": True, "pkg:rpm/clew-two": False}


def test_older_dnf_lists_requested_packages(database: Path, tmp_path: Path) -> None:
    history = tmp_path / "var/lib/dnf/history.sqlite"
    history.parent.mkdir(parents=True)
    connection = sqlite3.connect(history)
    connection.executescript(
        "CREATE TABLE rpm (item_id INTEGER, name TEXT, arch TEXT);"
        "CREATE TABLE trans_item (id INTEGER, item_id INTEGER, reason INTEGER);"
        "INSERT INTO rpm VALUES (1, 'clew-one', 'noarch'), (2, 'clew-two', 'noarch');"
        "INSERT INTO trans_item VALUES (1, 1, 1), (2, 2, 1), (3, 1, 2);"
    )
    connection.close()
    found = {p.purl.split("@")[0]: p.requested for p, _ in rpm.read_packages(tmp_path, database)}
    assert found == {"pkg:rpm/clew-one": True, "pkg:rpm/clew-two": False}


def test_damaged_reasons_are_unknown_reasons(tmp_path: Path) -> None:
    history = tmp_path / "var/lib/dnf/history.sqlite"
    history.parent.mkdir(parents=True)
    history.write_bytes(b"nonsense" * 100)
    assert rpm.read_requested(tmp_path) == {}


def test_no_database_no_packages(tmp_path: Path) -> None:
    assert rpm.find_database(tmp_path) is None
    assert Packages(None, root=tmp_path).owners([b"/opt/one/a file.txt"]) == {}
