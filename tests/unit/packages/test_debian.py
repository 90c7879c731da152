"""dpkg and apt themselves say what is right."""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from clew.packages import debian
from clew.packages.owners import Packages
from clew.prov.package_urls import parse_purl

pytestmark = pytest.mark.skipif(
    shutil.which("dpkg-query") is None or not debian.is_installed(Path("/")), reason="needs dpkg"
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def listed_files(package: str) -> list[bytes]:
    listing = subprocess.check_output(["dpkg-query", "-L", package]).split(b"\n")
    return [line for line in listing if line.startswith(b"/") and os.path.isfile(line)]


def name_of(purl: str) -> str:
    return parse_purl(purl).name


def test_every_file_that_dpkg_lists_is_owned(cache: Path) -> None:
    names = subprocess.check_output(["dpkg-query", "-W", "-f", "${binary:Package}\n"], text=True)
    some = random.Random(1).sample(names.split(), 40)
    packages = Packages(cache)
    asked = 0
    for name in some:
        files = listed_files(name)
        asked += len(files)
        owners = packages.owners(files)
        answer = subprocess.run(["dpkg", "-S", "--", *files], capture_output=True).stdout
        told = [line.partition(b": ") for line in answer.split(b"\n") if b": /" in line]
        for owner, _, path in told:
            if owner.startswith((b"diversion by", b"local diversion")):
                continue
            claimed = {word.decode().partition(":")[0] for word in owner.split(b", ")}
            assert name_of(owners[path]) in claimed, path
    assert asked > 100


def test_the_kernels_spelling_and_the_lists_spelling_are_one(cache: Path) -> None:
    library = next(f for f in listed_files("libc6") if f.endswith(b"/libc.so.6"))
    real = os.path.realpath(library)
    owners = Packages(cache).owners([library, real])
    assert owners[library] == owners[real]
    found = parse_purl(owners[real])
    shown = subprocess.check_output(
        ["dpkg-query", "-W", "-f", "${Version} ${Architecture}\n", "libc6"], text=True
    ).split()
    assert (found.manager, found.name) == ("deb", "libc6")
    assert [found.version, found.qualifiers["arch"]] == shown[:2]


def test_an_alternative_belongs_to_the_package_it_leads_to(cache: Path) -> None:
    target = os.path.realpath("/usr/bin/awk").encode()
    owners = Packages(cache).owners([b"/usr/bin/awk", b"/etc/alternatives/awk", target])
    assert len(owners) == 3
    assert len(set(owners.values())) == 1


def test_requested_packages_are_those_of_apt(cache: Path) -> None:
    if shutil.which("apt-mark") is None:
        pytest.skip("needs apt")
    shown = subprocess.check_output(["apt-mark", "showmanual"], text=True).split()
    manual = {name.partition(":")[0] for name in shown}
    mine = {name_of(p.purl) for p, _ in debian.read_packages(Path("/")) if p.requested}
    assert mine == manual
    packages = Packages(cache)
    purl = packages.owners([b"/usr/bin/dpkg"])[b"/usr/bin/dpkg"]
    assert packages.requested() == {purl: "dpkg" in manual}


def make_root(root: Path) -> Path:
    """A root with one package's file diverted for another's, as dpkg-divert leaves it."""
    info = root / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (root / "etc").mkdir()
    (root / "etc/os-release").write_text('ID="ubuntu"\n')
    (root / "lib").symlink_to("usr/lib")
    paragraphs = [
        f"Package: {name}\nStatus: {status}\nArchitecture: {arch}\nVersion: {version}\n"
        for name, status, arch, version in [
            ("dpkg", "install ok installed", "amd64", "1"),
            ("one", "install ok installed", "all", "1:2.0~rc1+b2"),
            ("two", "install ok installed", "amd64", "3"),
            ("gone", "purge ok not-installed", "amd64", "4"),
            ("left", "deinstall ok config-files", "amd64", "5"),
        ]
    ]
    (root / "var/lib/dpkg/status").write_text("\n".join(paragraphs))
    (root / "var/lib/dpkg/diversions").write_text("/lib/tool\n/lib/tool.one\ntwo\n")
    for name in ("one", "two"):
        text = f"/.\n/lib\n/lib/tool\n/usr\n/usr/{name}\n/usr/{name}/file with space\n"
        (info / f"{name}.list").write_text(text)
    (info / "gone.list").write_text("/usr/gone\n")
    (info / "left.list").write_text("/etc/left.conf\n")
    (root / "var/lib/apt").mkdir()
    (root / "var/lib/apt/extended_states").write_text(
        "Package: one\nArchitecture: amd64\nAuto-Installed: 1\n"
    )
    return root


def test_diversions_merged_directories_and_odd_versions(tmp_path: Path) -> None:
    owned = {p.purl: (p.requested, list(f)) for p, f in debian.read_packages(make_root(tmp_path))}
    assert owned == {
        "pkg:deb/ubuntu/one@1:2.0~rc1+b2?arch=all": (
            False,
            [b"/usr/lib/tool.one", b"/usr/one/file with space"],
        ),
        "pkg:deb/ubuntu/two@3?arch=amd64": (True, [b"/usr/lib/tool", b"/usr/two/file with space"]),
        "pkg:deb/ubuntu/left@5?arch=amd64": (False, [b"/etc/left.conf"]),
    }


def test_a_change_of_dpkgs_records_is_seen_at_once(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root")
    cache = tmp_path / "cache"
    paths = [b"/usr/one/file with space", b"/usr/new"]
    while not cache.exists():  # records that just changed are not kept
        assert len(Packages(cache, root=root).owners(paths)) == 1
        time.sleep(0.1)
    listing = root / "var/lib/dpkg/info/one.list"
    listing.write_text("/usr/new\n")
    status = root / "var/lib/dpkg/status"
    status.write_text(status.read_text().replace("1:2.0~rc1+b2", "2.1"))
    assert Packages(cache, root=root).owners(paths) == {
        b"/usr/new": "pkg:deb/ubuntu/one@2.1?arch=all"
    }
    (root / "etc/os-release").write_text("ID=debian\n")
    assert Packages(cache, root=root).owners(paths) == {
        b"/usr/new": "pkg:deb/debian/one@2.1?arch=all"
    }
