"""An execution that was recorded here repeats where nothing of it is installed.

The other machine is a root folder with BusyBox for its system, the libraries that bubblewrap and
Clew's own Python need, and no trace of the recorded program or its interpreter.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests.driver import Project

import clew

PYTHON = Path("/usr/bin/python3")
BUSYBOX = shutil.which("busybox")

pytestmark = [
    pytest.mark.skipif(os.getuid() != 0, reason="only root can make another root folder"),
    pytest.mark.skipif(not PYTHON.exists(), reason="the system has no Python to record"),
    pytest.mark.skipif(BUSYBOX is None, reason="no BusyBox (Debian: busybox-static)"),
]

PROGRAM = """\
import collections, json, sys
words = collections.Counter(open(sys.argv[1]).read().split())
json.dump(words.most_common(2), open("top.json", "w"))
print(sys.version.split()[0], sum(words.values()))
"""


def libraries(program: Path) -> set[Path]:
    said = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return {Path(found) for found in re.findall(r"(/\S+) \(0x", said)}


def put(root: Path, path: Path) -> None:
    target = root / str(path).lstrip("/")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path.resolve(), target)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    root = tmp_path / "machine"
    for name in ("bin", "proc", "dev", "sys", "tmp", "etc", "mnt"):
        (root / name).mkdir(parents=True)
    assert BUSYBOX is not None
    shutil.copy2(BUSYBOX, root / "bin/busybox")
    for name in ("sh", "mount", "unshare"):
        (root / "bin" / name).symlink_to("busybox")
    bwrap = Path(shutil.which("bwrap") or "/usr/bin/bwrap")
    shutil.copy2(bwrap, root / "bin/bwrap")
    folders = [Path(sysconfig.get_path("stdlib")) / "lib-dynload"]
    folders += [Path(sysconfig.get_path("platlib")) / n for n in ("blake3", "msgspec")]
    extensions = [found for folder in folders for found in folder.glob("*.so")]
    for program in (bwrap, Path(sys.executable).resolve(), *extensions):
        for library in libraries(program):
            put(root, library)
    return root


def inside(machine: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Clew there: its Python and packages are seen at their places, and `folder` at /mnt."""
    run = ["bwrap", "--cap-add", "ALL", "--bind", str(machine), "/", "--dev-bind", "/dev", "/dev"]
    run += [
        "--dev-bind",
        "/proc",
        "/proc",
        "--bind",
        str(folder),
        "/mnt",
        "--chdir",
        "/mnt",
        "--clearenv",
    ]
    for place in {sys.base_prefix, sys.prefix, str(Path(clew.__file__).parent.parent)}:
        run += ["--ro-bind", place, place]
    path = os.pathsep.join(filter(None, sys.path))
    run += ["--setenv", "PATH", "/bin", "--setenv", "HOME", "/tmp", "--setenv", "PYTHONPATH", path]
    return subprocess.run(
        [*run, sys.executable, "-m", "clew", *words], capture_output=True, text=True
    )


def test_it_repeats_where_its_interpreter_is_not(
    tmp_path: Path, machine: Path, graph_in_turn: dict[str, str]
) -> None:
    here = Project(tmp_path / "here")
    (here / "count.py").write_text(PROGRAM)
    (here / "text").write_text("a b a c a b\n")
    assert here.exec(str(PYTHON), "count.py", "text").status == 0
    there = tmp_path / "there"
    there.mkdir()
    assert here.command("push", str(there / "remote")).returncode == 0

    assert not list(machine.rglob("usr/bin/python3*"))
    gone = inside(machine, there, "exec", "--", str(PYTHON), "-c", "pass")
    assert (gone.returncode, "no such command" in gone.stderr) == (127, True), gone.stderr
    pulled = inside(machine, there, "pull", "remote", "--json")
    assert pulled.returncode == 0, pulled.stderr
    [execution] = json.loads(pulled.stdout)["executions"]
    ran = inside(machine, there, "repeat", execution["id"], "--json")
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
    document = json.loads(ran.stdout)
    assert (document["verdict"], document["execution"]["status"]) == ("identical", 0)
    assert document["execution"]["cwd"] == str(here.folder)
