"""What cannot be seen is said; what is large is borne."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.programs.compiling import compiled


def _as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may do this")


def test_another_root_folder_is_a_gap(project: Project, built: Path) -> None:
    _as_root()
    program = compiled("opens", built, "-static")
    (project / "root").mkdir()
    (project / "root/opens").write_bytes(program.read_bytes())
    (project / "root/opens").chmod(0o755)
    (project / "root/in").write_text("x\n")
    ran = project.exec("chroot", "root", "/opens", "open", "/in")
    assert (ran.status, ran.out) == (0, b"x\n"), ran.err
    assert [gap["what"] for gap in ran.gaps] == ["root"]
    assert ran.file("root/in")["role"] == "input"


def test_a_dynamic_program_under_another_root(project: Project) -> None:
    _as_root()
    ran = project.exec("chroot", "/", "/bin/cat", "/etc/hostname")
    assert ran.status == 0
    assert b"ld.so" not in ran.err
    assert [gap["what"] for gap in ran.gaps] == ["root"]
    assert ran.files["/etc/hostname"]["role"] == "input"


def test_a_lost_privilege_is_a_gap(project: Project, built: Path) -> None:
    _as_root()
    program = project / "privileged"
    program.write_bytes(compiled("peers", built).read_bytes())
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    (project / "in").write_text("x\n")
    ran = project.exec("./privileged", "in", "out")
    assert ran.status == 0
    gaps = {(gap["what"], gap["path"]) for gap in ran.gaps}
    assert gaps == {("set-uid", str(program))}


def test_another_user_is_followed(project: Project) -> None:
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if subprocess.run([*drop, "true"], capture_output=True).returncode:
        pytest.skip("this user cannot become another (setpriv needs root)")
    ran = project.exec(*drop, "cat", "/etc/hostname")
    assert (ran.status, ran.err) == (0, b"")
    assert ran.readers("/etc/hostname") == {"cat"}


def test_system_v_shared_memory_is_a_gap(project: Project) -> None:
    code = (
        "import ctypes; c = ctypes.CDLL(None);n = c.shmget(0, 4096, 0o1600); c.shmctl(n, 0, None)"
    )
    ran = project.exec(sys.executable, "-c", code)
    assert [gap["what"] for gap in ran.gaps] == ["shared-memory"]


def test_nested_tracing_is_refused_and_reported(project: Project) -> None:
    code = "import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != -1)"
    ran = project.exec(sys.executable, "-c", code)
    assert ran.status == 0
    assert [gap["what"] for gap in ran.gaps] == ["ptrace"]


def test_many_opens_in_one_process(project: Project) -> None:
    """More than a ring holds, several times over."""
    (project / "d").mkdir()
    code = (
        "import os\n"
        "for n in range(3000): open(f'd/{n}', 'w').close()\n"
        "for n in range(3000):\n"
        "    open(f'd/{n}').close(); os.stat(f'd/{n}'); os.path.exists(f'd/no{n}')"
    )
    ran = project.exec(sys.executable, "-c", code)
    assert ran.status == 0
    assert sum(name.startswith("d/") for name in ran.roles()) == 3000
    absent = {answer for _, kind, answer in ran.looked("d/no2999") if kind == "absent"}
    assert absent == {"ENOENT"}
    assert all(ran.looked(f"d/no{n}") for n in range(0, 3000, 97))


@pytest.mark.heavy
def test_ten_thousand_processes(project: Project) -> None:
    (project / "in").write_text("x\n")
    line = "n=0; while [ $n -lt 10000 ]; do /bin/true < in; n=$((n+1)); done"
    ran = project.exec("sh", "-c", line, timeout=900)
    assert ran.status == 0
    assert ran.show["processes"] == 10001
    assert ran.gaps == []


@pytest.mark.heavy
def test_a_hundred_thousand_files(project: Project) -> None:
    code = (
        "import os\nos.mkdir('d')\n"
        "for n in range(100000):\n"
        "    with open(f'd/{n}', 'w') as file: file.write(str(n))\n"
    )
    ran = project.exec(sys.executable, "-c", code, timeout=900)
    assert ran.status == 0
    assert ran.cat("d/99999") == b"99999"
    assert sum(name.startswith("d/") for name in ran.roles()) == 100000


@pytest.mark.heavy
def test_ten_gigabytes_of_nothing(project: Project) -> None:
    with (project / "sparse").open("wb") as file:
        file.truncate(10 << 30)
        file.seek(5 << 30)
        file.write(b"x")
    ran = project.sh(
        "head -c 10 sparse > out; printf y | dd of=sparse conv=notrunc status=none", timeout=1800
    )
    assert ran.status == 0
    assert ran.gaps == []
    assert ran.file("sparse")["size"] == 10 << 30
    blocks = sum(
        path.stat().st_blocks * 512 for path in (project / ".clew").rglob("*") if path.is_file()
    )
    assert blocks < 1 << 30
