"""`clew export --format dockerfile`: a builder makes an image of it that does the same."""

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest
from tests.driver import Project, Recording
from tests.local.programs.containers import needed

PROGRAM = """\
import os, pathlib
import idna

name = pathlib.Path("data/name.txt").read_text().strip()
pathlib.Path("result.txt").write_text(idna.encode(name).decode())
print(idna.__version__, os.environ["QUOTED"], os.getcwd())
"""
QUOTED = 'a "b" $HOME ${PATH} \\n it\'s'
SYSTEM_PYTHON = "/usr/bin/python3"
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")


def exported(recording: Recording, folder: str = "context") -> Path:
    project = recording.project
    ran = project.command("export", recording.id, "--format", "dockerfile", "-o", folder)
    assert ran.returncode == 0, ran.stderr.decode()
    return project / folder


def test_the_folder_has_what_is_copied_and_no_more(project: Project) -> None:
    (project / "data").mkdir()
    (project / "data/in.txt").write_text("b\na\n")
    (project / "data/in.txt").chmod(0o640)
    os.utime(project / "data/in.txt", ns=(0, 1_234_567_890_123_456_789))
    (project / "unrelated").write_text("not read")
    (project / "name").symlink_to("data/in.txt")
    project.environment["MY_TOKEN"] = "hunter2-and-more"
    context = exported(project.sh("sort name > out.txt"))
    files = context / "files" / str(project.folder).lstrip("/")
    assert (files / "data/in.txt").read_text() == "b\na\n"
    assert (files / "data/in.txt").stat().st_mode & 0o777 == 0o640
    assert (files / "data/in.txt").stat().st_mtime_ns == 1_234_567_890_123_456_789
    assert (files / "name").readlink() == Path("data/in.txt")
    assert not (files / "out.txt").exists()
    assert not (files / "unrelated").exists()
    text = (context / "Dockerfile").read_text()
    assert 'CMD ["sh", "-c", "sort name > out.txt"]' in text
    assert f"WORKDIR {project.folder}\n" in text
    assert "hunter2" not in text
    assert "-e MY_TOKEN" in text


def test_it_needs_a_folder_of_its_own(project: Project) -> None:
    recording = project.sh("true")
    for words in (["-o", "-"], []):
        ran = project.command("export", recording.id, "--format", "dockerfile", *words)
        assert ran.returncode == 2
    (project / "taken").mkdir()
    (project / "taken/file").write_text("x")
    ran = project.command("export", recording.id, "--format", "dockerfile", "-o", "taken")
    assert ran.returncode == 4
    assert (project / "taken/file").read_text() == "x"
    assert sorted(os.listdir(project.folder)) == [".clew", "taken"]


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The command, with a storage of its own."""
    needed("buildah", "debootstrap")
    if os.geteuid():
        pytest.skip("only root can make a root file system with debootstrap")
    storage = Path(tempfile.mkdtemp(prefix="clew-buildah-"))
    command = ["buildah", "--root", f"{storage}/root", "--runroot", f"{storage}/run"]
    try:
        yield command
    finally:
        subprocess.run([*command, "rm", "--all"], capture_output=True)
        subprocess.run([*command, "rmi", "--all", "--force"], capture_output=True)
        shutil.rmtree(storage, ignore_errors=True)


@pytest.fixture(scope="module")
def base(buildah: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """Debian as it comes, of the release that is here; there is no registry to ask."""
    here = platform.freedesktop_os_release()
    if here.get("ID") != "debian":
        pytest.skip("the packages of this distribution are not Debian's")
    root = tmp_path_factory.mktemp("debian") / "root"
    _done(["debootstrap", "--variant=minbase", here["VERSION_CODENAME"], str(root)])
    container = _done([*buildah, "from", "scratch"])
    _done([*buildah, "add", container, str(root), "/"])
    _done([*buildah, "commit", "--rm", container, "localhost/debian:base"])
    shutil.rmtree(root)
    return "localhost/debian:base"


@pytest.mark.heavy
def test_a_builder_makes_an_image_that_does_the_same(
    buildah: list[str], base: str, tmp_path: Path
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="clew [1] $x "))
    try:
        project = Project(folder)
        recording = _recorded(project)
        assert recording.status == 0, recording.err
        context = exported(recording)
        text = (context / "Dockerfile").read_text()
        assert "idna==3.10" in text
        assert not list(context.rglob("idna"))
        build = ["build", "--isolation", "chroot", "--network", "host", "--tag", "localhost/again"]
        _done([*buildah, *build, "--build-arg", f"BASE={base}", *_trusting(tmp_path), str(context)])
        config = json.loads(_done([*buildah, "inspect", "--type", "image", "localhost/again"]))
        container = _done([*buildah, "from", "localhost/again"])
        words = config["OCIv1"]["config"]["Cmd"]
        assert words == recording.show["command"]
        said = _done([*buildah, "run", "--isolation", "chroot", container, "--", *words])
        assert said.encode() == recording.out.strip()
        seen = Path(_done([*buildah, "mount", container]))
        left = seen / str(project / "result.txt").lstrip("/")
        assert left.read_bytes() == recording.cat("result.txt")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _recorded(project: Project) -> Recording:
    """A program of the system's Python, in an environment with a package of PyPI."""
    if not os.path.exists(SYSTEM_PYTHON):
        pytest.skip("the system has no Python of its own")
    _done([SYSTEM_PYTHON, "-m", "venv", "--without-pip", str(project / ".venv")])
    pip = [sys.executable, "-m", "pip", "--python", str(project / ".venv/bin/python")]
    _done([*pip, "install", "--quiet", "idna==3.10"])
    (project / "data").mkdir()
    (project / "data/name.txt").write_text("bücher.example\n")
    (project / "program.py").write_text(PROGRAM)
    project.environment["QUOTED"] = QUOTED
    return project.exec(".venv/bin/python", "program.py")


def _trusting(folder: Path) -> list[str]:
    """Have pip inside ask whom pip asks here, and trust whom this machine trusts."""
    settings = ConfigParser()
    settings.read("/etc/pip.conf")
    if not BUNDLE.exists():
        return []
    settings.read_dict({"global": {"cert": "/clew-bundle.crt"}})
    with open(folder / "pip.conf", "w") as file:
        settings.write(file)
    mounts = (f"{BUNDLE}:/clew-bundle.crt:ro", f"{folder}/pip.conf:/etc/pip.conf:ro")
    return [word for mount in mounts for word in ("--volume", mount)]


def _done(words: list[str]) -> str:
    ran = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ran.returncode == 0, f"{words}\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}"
    return ran.stdout.strip()
