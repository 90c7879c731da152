"""A repeat is given the credential files that its record has no bytes of, and keeps none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.local_and_remote import LocalAndRemote, start_local_and_remote

from clew.store import Store

SECRET = "s3cr3t-of-the-record"
OTHER = "s3cr3t-of-the-caller"
READ = """
import os, sys
line = open(".env").read().strip()
value = line.partition("=")[2]
print(len(value), value, oct(os.stat(".env").st_mode), sorted(os.listdir(".")))
"""


def kept(clew: Project, *secrets: str) -> str:
    """The files below `.clew` that hold one of these."""
    words = [word for secret in secrets for word in ("-e", secret)]
    found = subprocess.run(
        ["grep", "-rl", *words, str(clew.folder / ".clew")],
        capture_output=True,
        text=True,
    )
    return found.stdout


@pytest.fixture
def clew(tmp_path: Path) -> Project:
    """A project whose e1 read a `.env` in a folder of unusual mode."""
    clew = Project(tmp_path)
    (clew.folder / "app").mkdir(mode=0o751)
    clew.write("app/.env", f"API={SECRET}\n").chmod(0o640)
    clew.write("app/read.py", READ)
    clew("exec", "--", "sh", "-c", f"cd app && {sys.executable} read.py | cut -d' ' -f1,3- > out")
    assert kept(clew, SECRET) == ""
    return clew


def test_a_record_made_here_gets_the_file_of_this_machine(clew: Project) -> None:
    """The repeat finds it as it was: content, mode, and the folder around it."""
    env = clew.folder / "app/.env"
    ran = clew("repeat", "e1")
    assert f"it gets your own {env}\n" in ran.stderr
    assert clew("cat", "e2:app/out").stdout == clew("cat", "e1:app/out").stdout
    assert kept(clew, SECRET) == ""
    digests = [
        next(f["digest"] for f in clew.json("show", e, "--detail")["files"] if "/.env" in f["path"])
        for e in ("e1", "e2")
    ]
    assert digests[0] == digests[1]
    _, message, hint = clew.error("cat", "e2:app/.env", status=5)
    assert "only its digest was recorded" in message
    assert "it holds credentials, which are never stored" in hint
    assert clew.json("show", "e1")["credential_files"] == [str(env)]


def test_a_private_key_of_any_name(tmp_path: Path) -> None:
    """Other files of the directory are stored; a repeat gets the key of this machine."""
    clew = Project(tmp_path)
    (clew.folder / ".ssh").mkdir()
    clew.write(".ssh/deploy", f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}\n")
    clew.write(".ssh/config", "Host a\n")
    clew.write(".ssh/old", f"-----BEGIN RSA PRIVATE KEY-----\n{OTHER}\n")
    ran = "cat .ssh/config .ssh/deploy | wc -c > out; cat .ssh/old | wc -c; echo a > .ssh/old"
    clew("exec", "--exclude", "*/out", "--", "sh", "-c", ran)
    assert kept(clew, SECRET, OTHER) == ""
    clew.error("cat", "e1:.ssh/deploy", status=5)
    assert clew("cat", "e1:.ssh/config").stdout == "Host a\n"
    clew.write(".ssh/old", f"-----BEGIN RSA PRIVATE KEY-----\n{OTHER}\n")
    assert f"it gets your own {clew.folder}/.ssh/deploy" in clew("repeat", "e1").stderr
    clew("recreate", "e1:out", "--to", "again")
    assert (clew.folder / "again").read_text() == (clew.folder / "out").read_text()
    clew("exec", "--", "wc", "-c", ".ssh/config")
    clew("checkout", "e3", "work")
    clew.write("work/.ssh/other", f"-----BEGIN PRIVATE KEY-----\n{OTHER}\n")
    clew.write("work/.ssh/config", "Host b\n")
    assert ".ssh/other is a credential file and is not committed" in clew("commit", "work").stderr
    ran = clew("repeat", "e3", "--set", "2=.ssh/deploy", status=3)
    assert ".ssh/deploy is a credential file and is not imported" in ran.stderr
    assert kept(clew, SECRET, OTHER) == ""
    with Store(clew.folder / ".clew/store") as store:
        for name in (".ssh/deploy", ".ssh/old", "work/.ssh/other"):
            digest = store.put_file(os.fsencode(clew.folder / name), keep=False).digest
            assert not store.has(digest)


def test_a_renewed_file_is_reported_as_changed_and_masked(clew: Project) -> None:
    clew("exec", "--", sys.executable, "-c", "print(open('app/.env').read(), 1)")
    clew.write("app/.env", f"API={OTHER}\n")
    ran = clew("repeat", "e2", status=3)
    assert "app/.env, which has changed since it was recorded" in ran.stderr
    assert "***" in ran.stdout
    assert OTHER not in ran.stdout + ran.stderr + clew("cat", "e3:stdout").stdout
    assert kept(clew, OTHER) == ""


def test_an_incremental_repeat_sees_that_the_file_changed(clew: Project) -> None:
    """Also where its size and time are as recorded."""
    clew("exec", "--", "sh", "-c", "sha256sum app/.env > sum; true")
    same = clew.json("repeat", "e2", "--incremental")
    assert (same["verdict"], same["ran"]) == ("identical", [])
    clew.write("app/.env", f"API={OTHER}\n").chmod(0o640)
    assert len(OTHER) == len(SECRET)
    changed = clew.json("repeat", "e2", "--incremental", status=3)
    assert (changed["verdict"], len(changed["ran"])) == ("different", 2)
    assert clew("cat", "e4:sum").stdout != clew("cat", "e2:sum").stdout
    assert kept(clew, SECRET, OTHER) == ""


def test_a_difference_is_explained_with_the_file(clew: Project) -> None:
    """The experiments have it as well, and do not take it for something that the command wrote."""
    line = "cat app/.env > /dev/null && date +%N > when"
    clew("exec", "--", "sh", "-c", line)
    ran = clew("repeat", "e2", status=3)
    assert "clock" in ran.stdout + ran.stderr
    assert kept(clew, SECRET) == ""


def test_a_file_that_is_excluded_is_not_given(clew: Project) -> None:
    clew.write("data.bin", "large")
    clew("exec", "--exclude", "*.bin", "--", "cat", "data.bin", "app/.env")
    code, message, _ = clew.error("repeat", "e2", status=5)
    assert (code, "data.bin" in message, ".env" in message) == ("no-content", True, False)


def test_a_commit_and_a_parameter_store_no_credential_file(clew: Project) -> None:
    clew("exec", "--", "wc", "-c", "app/read.py")
    clew("checkout", "e2", "work")
    clew.write("work/.env", f"API={OTHER}\n")
    assert clew.json("status", "work")["added"] == []
    clew.write("work/app/read.py", "\n")
    ran = clew("commit", "work")
    assert ".env is a credential file and is not committed" in ran.stderr
    clew.write("other/.env", f"API={OTHER}\n")
    ran = clew("repeat", "e2", "--set", "2=other/.env", status=3)
    assert "other/.env is a credential file and is not imported" in ran.stderr
    with Store(clew.folder / ".clew/store") as store:
        digest = store.put_file(os.fsencode(clew.folder / "other/.env"), keep=False).digest
        assert not store.has(digest)


def test_a_record_made_elsewhere_gets_only_a_file_that_is_given(
    clew: Project, tmp_path: Path
) -> None:
    remote = tmp_path / "remote"
    clew("push", str(remote))
    victim = Project(tmp_path / "victim")
    victim("pull", str(remote))
    path = clew.folder / "app/.env"  # the stranger names a file that the victim can read
    code, message, hint = victim.error("repeat", "e1", status=2)
    assert code == "secrets-needed"
    assert f"was made elsewhere and asks for secrets that are not recorded: {path}" in message
    assert f"--secret {path}=FILE" in hint
    mine = tmp_path / "mine"
    mine.write_bytes(f"API={OTHER}\r\n\n".encode())
    ran = victim("repeat", "e1", "--secret", f"{path}={mine}")
    assert f"it gets no network and these secrets: {path}" in ran.stderr
    assert "differs from the recorded one" in ran.stderr
    assert victim("cat", "e2:app/out").stdout.startswith(f"{len(OTHER)} ")
    assert kept(victim, SECRET, OTHER) == ""
    code, message, _ = victim.error("repeat", "e1", "--secret", f"{path}=no/such", status=2)
    assert (code, "no/such" in message) == ("usage", True)
    victim("repeat", "e1", "--secret", str(path))  # the file of that path here


def test_a_record_whose_project_had_other_credential_files(clew: Project, tmp_path: Path) -> None:
    """Here every file is stored; what was given is not."""
    clew("push", str(tmp_path / "remote"))
    victim = Project(tmp_path / "victim")
    config = victim.folder / ".clew/config.toml"
    config.write_text(config.read_text().replace("# credentials = []", "credentials = []"))
    victim("pull", str(tmp_path / "remote"))
    victim("repeat", "e1", "--secret", str(clew.folder / "app/.env"))
    assert kept(victim, SECRET) == ""
    victim.error("cat", "e2:app/.env", status=5)


def test_a_server_gets_the_files_that_the_user_names(tmp_path: Path) -> None:
    with start_local_and_remote(tmp_path) as both:
        _repeat_there(both)


def _repeat_there(both: LocalAndRemote) -> None:
    both.write(".env", f"API={SECRET}\n")
    ran = both.run_remote("exec", "--name", "env", "--", "sh", "-c", "cat .env; wc -c < .env")
    assert ran.returncode == 0
    without = both.remote_json("repeat", "env")["error"]
    path = both.remote_folder / ".env"
    assert (without["code"], without["secrets"]) == ("secrets-needed", [str(path)])
    (both.remote_folder / "kubeconfig").write_text(SECRET)
    ran = both.run_remote("repeat", "env", "--set", "2=kubeconfig", "--secret", str(path))
    assert b"kubeconfig is a credential file and is not imported" in ran.stderr
    given = both.remote_folder / "given"
    given.write_bytes(b"API=" + OTHER.encode() + b"\n\xff\n")  # also bytes that are no text
    ran = both.run_remote("repeat", "env", "--secret", f"{path}={given}")
    assert ran.returncode == 3
    assert ran.stdout.splitlines()[-1] == str(len(given.read_bytes())).encode()
    assert OTHER.encode() not in ran.stdout
    assert OTHER not in both.server.log.read_text()
    found = subprocess.run(
        ["grep", "-rl", "-e", OTHER, "-e", SECRET, both.served / ".clew"], capture_output=True
    )
    assert found.stdout == b""
