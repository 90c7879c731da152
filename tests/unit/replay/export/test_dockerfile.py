"""What a Dockerfile installs, makes and copies."""

import re
import shlex
from dataclasses import replace
from urllib.parse import quote

import pytest
from tests.unit.replay.portable_executions import DIRECTORY, FILE, PROGRAM, link, portable

from clew.replay.export.dockerfile import format_dockerfile
from clew.replay.export.file_sources import find_sources
from clew.replay.export.portability import PortableExecution
from clew.replay.sandbox.initial_files import Entry

ASKED = "pkg:deb/debian/r-base@4.2?arch=amd64"
ALONG = "pkg:deb/debian/libc6@2.36?arch=amd64"
FOREIGN = "pkg:deb/debian/libc6@2.36?arch=i386"


def text(execution: PortableExecution) -> str:
    return format_dockerfile(execution, find_sources(execution))


def copied(execution: PortableExecution) -> set[str]:
    return {
        path.decode() for path, e in find_sources(execution).copied.items() if e.kind != "directory"
    }


def test_packages_are_installed_and_not_copied() -> None:
    owners = {"/usr/bin/R": ASKED, "/usr/lib/libc.so.6": ALONG, "/usr/lib32/libc.so.6": FOREIGN}
    execution = portable(
        {**dict.fromkeys(owners, FILE), "/etc/ld.so.cache": FILE, "/home/me/project/x.R": FILE},
        packages=owners,
        facets={"packages": {key: {"requested": False} for key in (ALONG, FOREIGN)}},
    )
    said = text(execution)
    assert "ARG BASE=docker.io/library/debian:12\nFROM ${BASE}" in said
    assert "    r-base=4.2; do" in said
    assert "    libc6 \\\n    libc6:i386 \\\n" in said
    assert "#   libc6=2.36\n" in said
    assert "dpkg --add-architecture i386" in said
    assert "python" not in said
    assert copied(execution) == {"/home/me/project/x.R"}
    assert "# 1 system files that belong to no package" in said
    assert 'COPY --chown=1000:100 ["files/home/me/", "/home/me/"]' in said
    assert "WORKDIR /home/me/project\nUSER 1000:100" in said
    assert 'PRICE="5\\$"' in said
    assert said.endswith('CMD ["program", "a b"]\n')


def test_a_virtual_environment_of_the_systems_python() -> None:
    venv = "/home/me/.venv"
    site = f"{venv}/lib/python3.11/site-packages"
    packages = {
        "/usr/bin/python3.11": "pkg:deb/debian/python3.11-minimal@3.11.2",
        f"{venv}/pyvenv.cfg": "pkg:generic/python@3.11.2",
        f"{site}/numpy/__init__.py": "pkg:pypi/numpy@2.0",
        f"{venv}/bin/f2py": "pkg:pypi/numpy@2.0",
        f"{site}/mine.pth": "pkg:pypi/mine@1?download_url=file:///home/me/mine",
    }
    links = {f"{venv}/bin/python": link("/usr/bin/python3"), "/usr/bin/python3": link("python3.11")}
    own = {"/home/me/project/x.py": FILE, f"{site}/__pycache__/x.pyc": FILE}
    execution = portable({**dict.fromkeys(packages, FILE), **links, **own}, packages=packages)
    said = text(execution)
    assert "    python3-pip \\\n    python3-venv \\\n" in said
    assert f"RUN python3.11 -m venv {venv}\n" in said
    assert (
        f"RUN {venv}/bin/python -m pip install --no-cache-dir --no-deps \\\n    numpy==2.0" in said
    )
    assert "mine" not in said.replace("/home/me/mine", "").split("COPY")[0].split("FROM")[1]
    assert "[ -L /usr/bin/python3 ] || ln -s -- python3.11 /usr/bin/python3" in said
    assert copied(execution) == {"/home/me/project/x.py", f"{site}/mine.pth"}


def test_a_python_of_no_package_is_that_of_an_image() -> None:
    home = "/home/me/.pyenv/versions/3.12.1"
    site = f"{home}/lib/python3.12/site-packages"
    packages = {
        f"{home}/bin/python3.12": "pkg:generic/python@3.12.1",
        f"{home}/lib/python3.12/os.py": "pkg:generic/python@3.12.1",
        f"{site}/numpy/__init__.py": "pkg:pypi/numpy@2.0",
    }
    execution = portable({**dict.fromkeys(packages, FILE)}, packages=packages)
    said = text(execution)
    assert "ARG BASE=docker.io/library/python:3.12.1-bookworm" in said
    assert "Its Python 3.12.1 was built or downloaded" in said
    assert f"ln -s /usr/local {home}\n" in said
    assert f"RUN {home}/bin/python3.12 -m pip install --no-cache-dir --no-deps \\" in said
    assert copied(execution) == set()
    arch = {"os": {"id": "arch", "pretty_name": "Arch"}}
    elsewhere = portable(dict.fromkeys(packages, FILE), packages=packages, facets=arch)
    said = text(elsewhere)
    assert "It ran on Arch. No image is known for that" in said
    assert f"COPY python {home}" in said


def test_packages_beside_a_virtual_environment_go_where_they_were() -> None:
    site = "/usr/local/lib/python3.11/dist-packages"
    packages = {
        f"{site}/idna/core.py": "pkg:pypi/idna@3.10",
        "/usr/local/bin/idna": "pkg:pypi/idna@3.10",
        "/usr/bin/python3.11": "pkg:deb/debian/python3.11-minimal@3.11.2",
    }
    execution = portable(dict.fromkeys(packages, PROGRAM), packages=packages)
    assert f"RUN python3.11 -m pip install --no-cache-dir --no-deps --target {site} \\" in text(
        execution
    )
    assert copied(execution) == {"/usr/local/bin/idna"}
    assert 'COPY ["files/usr/local/bin/idna", "/usr/local/bin/idna"]' in text(execution)


def test_text_from_outside_stays_in_its_line() -> None:
    execution = portable(
        {"/data [1] $x/a": FILE, "/link": link("/data"), "/home/me/project": DIRECTORY},
        environ={"EVIL": "x\nRUN evil", "ODD%%": "()"},
    )
    said = text(execution)
    assert "\nRUN evil" not in said
    assert "# A Dockerfile cannot contain the variable EVIL." in said
    assert "# A Dockerfile cannot contain the variable ODD%%." in said
    assert re.search(r'\["files/data _1_ _x-[0-9a-f]{8}/", "/data \[1\] \\\\\$x/"\]', said)
    assert 'RUN ["ln", "-sfn", "--", "/data", "/link"]' in said


def test_an_rpm_system() -> None:
    execution = portable(
        {"/usr/bin/tool": Entry("file")},
        packages={"/usr/bin/tool": "pkg:rpm/fedora/tool@1.2-3?arch=x86_64"},
        facets={"os": {"id": "fedora", "version_id": "41", "pretty_name": "Fedora 41"}},
    )
    assert "ARG BASE=docker.io/library/fedora:41" in text(execution)
    assert "RUN dnf install --assumeyes \\\n    tool-1.2-3.x86_64 \\\n && dnf clean all" in text(
        execution
    )


EVIL = (
    *("x\nRUN pwned", "x; pwned", "$(pwned)", "`pwned`"),
    *("-o=pwned", "--pwned", "x\\\nRUN pwned", "'pwned'"),
)
WORDS = {"ARG", "FROM", "RUN", "COPY", "ENV", "WORKDIR", "USER", "CMD"}


@pytest.mark.parametrize("evil", EVIL)
def test_no_word_of_a_record_becomes_an_instruction(evil: str) -> None:
    quoted = quote(evil, safe="")
    venv = f"/opt/{evil}/.venv"
    site = f"{venv}/lib/python3.11/site-packages"
    purls = {
        "/usr/bin/a": f"pkg:deb/debian/{quoted}@1",
        "/usr/bin/b": f"pkg:deb/debian/b@{quoted}",
        "/usr/bin/c": f"pkg:deb/debian/c@1?arch={quoted}",
        "/usr/bin/c2": "pkg:deb/debian/c@1?arch=amd64",
        "/usr/bin/d": f"pkg:rpm/fedora/{quoted}@1",
        "/usr/bin/e": f"pkg:conda/{quoted}@1",
        f"{site}/f.py": f"pkg:pypi/{quoted}@1",
        f"{site}/g.py": f"pkg:pypi/g@{quoted}",
        f"{site}/h.py": f"pkg:pypi/h@1?download_url={quoted}",
        f"{site}/i.py": "pkg:pypi/i@1",
        f"{venv}/pyvenv.cfg": f"pkg:generic/python@{quoted}",
        f"/opt/{evil}/bin/python3": f"pkg:generic/python@3.11{quoted}",
    }
    execution = portable(
        {**dict.fromkeys(purls, FILE), f"/home/me/{evil}": FILE, f"/usr/bin/{evil}": link(evil)},
        packages=purls,
        environ={evil: "x", "A": evil},
        facets={"os": {"id": "debian", "version_id": evil, "pretty_name": evil}},
    )
    execution = replace(
        execution,
        redacted=(evil,),
        warnings=(evil,),
        plan=replace(execution.plan, cwd=f"/w/{evil}", command=(evil, evil + "\\")),
    )
    lines = [line for line in text(execution).replace("\\\n", " ").splitlines() if line]
    assert {line.split(" ")[0] for line in lines if not line.startswith("#")} <= WORDS
    for line in lines:
        if line.startswith("RUN ") and not line.startswith("RUN ["):
            named = line.replace(f"-- {evil}", "--")  # after that, no word is an option
            shell = shlex.shlex(named, posix=True, punctuation_chars=True)
            shell.whitespace_split = True
            words = list(shell)
            assert not [w for w in words if w in ("pwned", "--pwned", "-o=pwned")]
            if not evil.startswith("-"):  # a path may hold that unquoted
                assert not re.sub(r"'[^']*'", "", named.replace("'\"'\"'", "")).count("pwned"), line
