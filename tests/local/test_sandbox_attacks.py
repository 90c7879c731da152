"""A repeated command that attacks: nothing of the host can be reached from the sandbox, and what it
leaves there misleads nobody outside."""

import ctypes
import json
import os
import pty
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver import CLEW, Project
from tests.local.programs.attacks import ATTACK, IMPORTS
from tests.local.programs.compiling import compiled

from clew.confined_files import Confined
from clew.store import Store
from clew.witness import tracer_binary

SOMEBODY = 61234
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(params=["caller", "unprivileged"])
def attacker(request: pytest.FixtureRequest) -> Iterator[tuple[Project, Run]]:
    """A project, and how to run clew in it: as the user who runs the tests, or as a plain user.
    Not in `tmp_path`: other runs of pytest close that to all but its owner again."""
    place = Path(tempfile.mkdtemp(prefix="clew-attacks-"))
    place.chmod(0o711)
    project = Project(place / "theirs")
    become: list[str] = []
    if request.param == "unprivileged":
        if os.getuid() != 0:
            pytest.skip("only root can become another user")
        shutil.rmtree(project / ".clew")
        for path in [project.folder.parent, *project.folder.parent.rglob("*")]:
            os.lchown(path, SOMEBODY, SOMEBODY)
        # The capability lets that user reach a Python that lies in root's home.
        become = ["setpriv", f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups"]
        become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]

    def run(*words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
        settings: dict[str, Any] = {"cwd": project.folder, "env": project.environment}
        settings |= {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 120}
        return subprocess.run([*become, *CLEW, *words], **{**settings, **more})

    if become:
        run("init", check=True)
    yield project, run
    shutil.rmtree(place)


@pytest.fixture
def secret(attacker: tuple[Project, Run]) -> Path:
    """A private file of the user who repeats."""
    project, _ = attacker
    path = project.folder.parent / "private" / "secret"
    path.parent.mkdir(mode=0o700)
    path.write_text("the user's own")
    path.chmod(0o600)
    owner = project.folder.stat()
    for each in (path, path.parent):
        os.chown(each, owner.st_uid, owner.st_gid)
    return path


@pytest.fixture
def abstract() -> Iterator[str]:
    """A service of the host on an abstract socket."""
    name = f"clew-test-{os.urandom(4).hex()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"\0{name}")
        listening.listen()
        yield name


def test_nothing_of_the_host_can_be_reached(
    attacker: tuple[Project, Run], secret: Path, abstract: str
) -> None:
    _, run = attacker
    written = secret.parent / "written"
    ran = run("exec", "--", sys.executable, "-c", IMPORTS)
    assert ran.returncode == 0, ran.stderr
    names = {"SECRET": str(secret), "WRITTEN": str(written), "ABSTRACT": abstract}
    program = "".join(f"{name} = {value!r}\n" for name, value in names.items()) + ATTACK
    outside = os.open("/", os.O_RDONLY | os.O_DIRECTORY)  # a descriptor that the caller left open
    os.set_inheritable(outside, True)
    try:
        ran = run("repeat", "e1", "--set", f"2={program}", close_fds=False)
    finally:
        os.close(outside)
    assert ran.returncode == 3, ran.stderr
    said = json.loads(ran.stdout.splitlines()[0])
    assert said["read"] == []
    assert not written.exists(), said["wrote"]
    ours = {(path.stat().st_dev, path.stat().st_ino) for path in tracer_binary.DIRECTORY.iterdir()}
    assert not ours & {(dev, ino) for _, dev, ino in said["writable"]}, said["writable"]
    none = "0" * 16
    assert said["status"] == {
        **dict.fromkeys(("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"), none),
        "NoNewPrivs": "1",
        "Seccomp": "2",
    }
    assert said["fds"] == [0, 1, 2]
    assert len(said["processes"]) == 4, said["processes"]  # bwrap, the tracer, its files, python
    allowed = {name: how for name, how in said["calls"].items() if how == "allowed"}
    assert allowed == {}, said["calls"]
    calls = said["calls"]
    assert calls["tracer environ"] == calls["tracer mem"] == calls["tracer exe"] == "EACCES"
    assert calls["ptrace"] == calls["pidfd_getfd"] == calls["process_vm_writev"] == "EPERM"
    assert calls["core_pattern"] in ("EROFS", "EACCES")
    assert said["stdin"], "stdin is a device of this machine"
    assert calls["mode of a device"] in ("EROFS", "EPERM")
    assert calls["mode of stdin"] in ("EROFS", "EPERM")
    assert calls["keyring"] == bytes(8).hex() or calls["keyring"].startswith("E"), calls


def test_the_terminal_cannot_be_typed_into(project: Project) -> None:
    """Repeated from a terminal, a command has neither that terminal nor a way to open it."""
    program = (
        "import fcntl, os, termios\n"
        "for fd in (0, 1, 2):\n"
        "    try: print(fd, os.ttyname(fd))\n"
        "    except OSError: pass\n"
        "try: fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), termios.TIOCSTI, b'x'); print('typed')\n"
        "except OSError as error: print(error.errno)\n"
        "print(os.getsid(0) == os.getpgid(os.getppid()))\n"
    )
    project.exec(sys.executable, "-c", "import fcntl, os, termios")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(project.folder)
        words = [*CLEW, "repeat", "e1", "--set", f"2={program}"]
        os.execvpe(words[0], words, project.environment)
    said = b""
    try:
        while block := os.read(terminal, 4096):
            said += block
    except OSError:
        pass
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3, said
    assert said.startswith(b"6\r\nTrue\r\n"), said  # ENXIO: there is no terminal to open


LINKS = {
    "absolute": 'ln -s "$1" d',
    "relative": 'ln -s "../../../../../../../../../..$1" d',
    "parent": 'ln -s "$1/../private" d',
}


@pytest.mark.parametrize("link", LINKS)
def test_links_do_not_lead_to_files_of_the_host(
    attacker: tuple[Project, Run], secret: Path, link: str
) -> None:
    """The command writes d/secret and leaves a link in place of d: what is at d/secret then, on
    the host, is no output of it."""
    project, run = attacker
    line = f"mkdir d; echo mine > d/secret; ls d; rm -r d; {LINKS[link]}; exit 0"
    ran = run("exec", "--", "sh", "-c", "mkdir d; echo > d/secret; ls d; rm -r d; ln -s x d; rm d")
    assert ran.returncode == 0, ran.stderr
    ran = run("repeat", "e1", "--set", f"2={line.replace('$1', str(secret.parent))}", "--json")
    document = json.loads(ran.stdout)
    again = document["execution"]["id"]
    shown = json.loads(run("show", again, "--detail", "--json").stdout)
    assert any(file["path"].endswith("/d") for file in shown["files"]), shown["files"]
    ran = run("cat", f"{again}:{project.folder}/d/secret")
    assert ran.stdout != secret.read_bytes(), link
    with Store(project.folder / ".clew/store") as store:
        digest = store.put_file(os.fsencode(secret), keep=False).digest
        assert not store.has(digest), "a private file of the host was stored"


def test_paths_that_programs_report_do_not_lead_to_the_host(
    attacker: tuple[Project, Run], secret: Path
) -> None:
    """The injected library's memory belongs to the program, which can claim to have written any
    path: `/../../private/secret` is looked for in the sandbox alone."""
    project, run = attacker
    forge = compiled("forge", project.folder)
    claimed = "/.." * 12 + str(secret)
    ran = run("exec", "--", str(forge), "claim", "=/nowhere")
    assert ran.returncode == 0, ran.stderr
    ran = run("repeat", "e1", "--set", f"2=={claimed}", "--json")
    assert ran.returncode in (0, 3), ran.stderr
    with Store(project.folder / ".clew/store") as store:
        digest = store.put_file(os.fsencode(secret), keep=False).digest
        assert not store.has(digest), "a private file of the host was stored"


@pytest.mark.parametrize("how", ["race", "noise", "cut", "calls"])
def test_hostile_memory_does_not_harm_the_tracer(project: Project, how: str) -> None:
    """Sizes that change after they were checked, noise, a ring that is cut short, and calls with
    pointers to nowhere."""
    forge = compiled("forge", project.folder)
    ran = project.exec(str(forge), how, "/nowhere")
    assert (ran.status, ran.out) == (0, b"done\n"), ran.err


def test_the_command_inherits_nothing_of_clew(project: Project) -> None:
    """Also where it runs on the host, it has only what its caller gave."""
    program = (
        "import os; found = os.listdir('/proc/self/fd')\n"
        "print(sorted(int(fd) for fd in found if os.path.exists('/proc/self/fd/' + fd)))"
    )
    given, other = os.pipe()
    try:
        ran = project.exec(sys.executable, "-c", program, pass_fds=(given,))
    finally:
        os.close(given)
        os.close(other)
    assert json.loads(ran.out) == [0, 1, 2, given]


@pytest.mark.parametrize("path", ["/proc/self/fd/{}/evil", "/proc/self/fd/{}/../evil"])
def test_a_file_that_the_record_names_is_opened_without_our_descriptors(
    tmp_path: Path, path: str
) -> None:
    """The path of standard output comes from the record: it may name descriptors of the tracer."""
    spool = tmp_path / "spool"
    spool.mkdir()
    descriptor = os.open(spool, os.O_RDONLY)
    words = [os.fspath(tracer_binary.TRACER), "--out", str(tmp_path / "trace")]
    words += ["--spool", f"/proc/self/fd/{descriptor}", "--isolated", "1"]
    words += ["--open", f"1:{os.O_WRONLY | os.O_CREAT}:{path.format(descriptor)}", "--", "true"]
    ran = subprocess.run(words, pass_fds=(descriptor,), capture_output=True, timeout=60)
    os.close(descriptor)
    assert ran.returncode != 0
    assert list(tmp_path.rglob("evil")) == []


# -- files of someone else, read while he changes them


def test_a_confined_path_never_leads_out(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a").mkdir(parents=True)
    (outside / "a").mkdir(parents=True)
    (root / "a/x").write_text("inside")
    (outside / "x").write_text("outside")
    (outside / "a/x").write_text("outside")
    (root / "absolute").symlink_to(outside)
    (root / "relative").symlink_to("../outside")
    (root / "here").symlink_to("/a")
    files = Confined(os.open(root, os.O_PATH))

    def read(path: str) -> str | None:
        try:
            file = files.open(path.encode(), os.O_RDONLY)
        except OSError:
            return None
        with open(file) as opened:
            return opened.read()

    assert read("/here/x") == read("/../a/x") == read("/a/../../a/x") == "inside"
    assert read("/absolute/x") is read("/relative/x") is read("/../outside/x") is None
    over = threading.Event()

    def swap() -> None:
        """Folder and link change places as fast as they can."""
        rename = ctypes.CDLL(None).renameat2
        (root / "b").symlink_to(outside / "a")
        while not over.is_set():
            rename(-100, bytes(root / "a"), -100, bytes(root / "b"), 2)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        assert {read("/a/x") for _ in range(20_000)} <= {"inside", None}
    finally:
        over.set()
        thread.join()


def test_a_repeat_after_a_repeat_still_works(attacker: tuple[Project, Run]) -> None:
    _, run = attacker
    ran = run("exec", "--", "sh", "-c", "echo a > out; mkdir d; ln -s out link")
    assert (ran.returncode, b"warning" in ran.stderr) == (0, False), ran.stderr
    for _ in range(2):
        ran = run("repeat", "e1", "--json")
        assert json.loads(ran.stdout)["verdict"] == "identical", ran.stdout
