import os
import re
import subprocess
from base64 import b64decode
from pathlib import Path

import msgspec
import pytest

from clew.redaction import Redactor
from clew.witness.environment import describe_git, facets

PLAIN = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}


def facets_with(environ: dict[str, str]) -> dict[str, object]:
    return facets(Path("/"), environ, Redactor(environ), machine="m1")


def test_the_facets_describe_this_machine() -> None:
    found = facets_with({"LANG": "de_DE.UTF-8", "LC_ALL": "C", "TZ": "Asia/Tokyo"})
    assert found["kernel"] == {
        "name": "Linux",
        "release": subprocess.check_output(["uname", "-r"], text=True).strip(),
        "version": subprocess.check_output(["uname", "-v"], text=True).strip(),
    }
    assert isinstance(found["cpu"], dict)
    assert found["cpu"]["usable"] == int(subprocess.check_output(["nproc"]))
    assert found["cpu"]["architecture"] == os.uname().machine
    cpu = Path("/proc/cpuinfo").read_text().splitlines()
    fields = dict(re.split(r"\s*: ?", line, maxsplit=1) for line in cpu if ":" in line)
    if "flags" in fields:
        assert found["cpu"]["model"] == fields["model name"]
        assert set(found["cpu"]["flags"]) == set(fields["flags"].split())
    libc = subprocess.check_output(["getconf", "GNU_LIBC_VERSION"], text=True)
    assert found["libc"] == libc.strip()
    assert found["locale"] == {"LANG": "de_DE.UTF-8", "LC_ALL": "C"}
    assert found["timezone"] == "Asia/Tokyo"
    assert found["machine"] == "m1"
    umask = subprocess.check_output(["sh", "-c", "umask"], text=True).strip()
    assert found["umask"] == umask
    assert isinstance(found["user"], dict)
    assert found["user"]["name"] == subprocess.check_output(["id", "-un"], text=True).strip()
    assert isinstance(found["limits"], dict)
    soft = subprocess.check_output(["sh", "-c", "ulimit -Sn"], text=True).strip()
    assert found["limits"]["nofile"][0] == (None if soft == "unlimited" else int(soft))
    assert isinstance(found["memory"], dict)
    assert found["memory"]["total"] > 1 << 20


def test_secrets_are_named_without_their_values() -> None:
    found = facets_with({"API_TOKEN": "s3cr3tvalue", "OTHER": "x s3cr3tvalue"})
    assert found["redacted"] == ["API_TOKEN"]
    assert b"s3cr3tvalue" not in msgspec.json.encode(found)


def test_variables_that_are_not_utf8_keep_their_bytes() -> None:
    found = facets_with({"RAW": "a\udcffb", "PLAIN": "ü"})
    assert found["variables"] == {"RAW": "a\ufffdb", "PLAIN": "ü"}
    assert isinstance(found["variables_b64"], dict)
    assert {n: b64decode(v) for n, v in found["variables_b64"].items()} == {"RAW": b"a\xffb"}
    assert msgspec.json.decode(msgspec.json.encode(found)) == found


def run_git(directory: Path, *arguments: str) -> str:
    return subprocess.check_output(
        ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", "-C", str(directory), *arguments],
        text=True,
        env=PLAIN,
    ).strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    run_git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("1\n")
    run_git(tmp_path, "add", "code.py")
    return tmp_path


def test_git_finds_commit_and_dirty_state_from_a_subdirectory(repository: Path) -> None:
    branch = run_git(repository, "symbolic-ref", "--short", "HEAD")
    assert describe_git(repository, PLAIN) == {"commit": None, "dirty": True, "branch": branch}
    run_git(repository, "commit", "-qm", "first")
    below = repository / "a" / "b"
    below.mkdir(parents=True)
    commit = run_git(repository, "rev-parse", "HEAD")
    assert describe_git(below, PLAIN) == {"commit": commit, "dirty": False, "branch": branch}
    (below / "new").write_text("untracked")
    assert describe_git(below, PLAIN) == {"commit": commit, "dirty": False, "branch": branch}
    (repository / "code.py").write_text("2\n")
    assert describe_git(below, PLAIN) == {"commit": commit, "dirty": True, "branch": branch}


def test_git_leaves_the_repository_as_it_is(repository: Path) -> None:
    run_git(repository, "commit", "-qm", "first")
    index = repository / ".git" / "index"
    os.utime(repository / "code.py", ns=(1, 1))  # would make git refresh its index
    before = index.read_bytes(), index.stat().st_mtime_ns
    assert describe_git(repository, PLAIN) is not None
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before


def test_settings_of_a_repository_cannot_start_programs(repository: Path) -> None:
    run_git(repository, "commit", "-qm", "first")
    run_git(repository, "config", "core.fsmonitor", f"touch {repository}/started")
    assert describe_git(repository, PLAIN) is not None
    assert not (repository / "started").exists()


def test_a_worktree_is_a_repository(repository: Path) -> None:
    run_git(repository, "commit", "-qm", "first")
    run_git(repository, "worktree", "add", "-q", str(repository / "tree"))
    assert describe_git(repository / "tree", PLAIN) == {
        "commit": run_git(repository, "rev-parse", "HEAD"),
        "dirty": False,
        "branch": "tree",
    }


def test_git_is_none_without_a_usable_repository(tmp_path: Path) -> None:
    assert describe_git(Path("/"), PLAIN) is None
    (tmp_path / ".git").write_text("nonsense")
    assert describe_git(tmp_path, PLAIN) is None
    assert describe_git(tmp_path, {"PATH": "/nonexistent"}) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give files away")
def test_git_is_none_for_a_repository_of_another_user(repository: Path) -> None:
    run_git(repository, "commit", "-qm", "first")
    os.chown(repository, 12345, 12345)
    assert describe_git(repository, PLAIN) is None
