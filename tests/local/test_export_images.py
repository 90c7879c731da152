"""`clew export --format oci`: containers run what was recorded, to the same result."""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project, Recording
from tests.local.programs.containers import Containerd, containerd, needed

SECRET = "hunter2-and-more"
PROGRAM = """\
import json, os, pathlib, sys
import msgspec

numbers = msgspec.json.decode(pathlib.Path("data/in.json").read_bytes())
pathlib.Path("out/deep").mkdir(parents=True)
pathlib.Path("out/deep/sum.json").write_text(json.dumps({"sum": sum(numbers)}))
with open("log", "a") as log:
    log.write("again\\n")
print(sys.argv[1:], os.getcwd(), os.getuid(), os.environ["COLOUR"], "MY_TOKEN" in os.environ)
print("gone wrong", file=sys.stderr)
sys.exit(7)
"""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Containerd]:
    with containerd() as started:
        yield started


def exported(recording: Recording, name: str = "image.tar") -> Path:
    ran = recording.project.command("export", recording.id, "--format", "oci", "-o", name)
    assert ran.returncode == 0, ran.stderr.decode()
    return recording.project / name


class Image:
    """An archive, read with nothing but the words of the specification."""

    def __init__(self, archive: Path) -> None:
        with tarfile.open(archive) as tar:
            self._files = {m.name: tar.extractfile(m).read() for m in tar if m.isfile()}  # type: ignore[union-attr]
        assert json.loads(self._files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
        (self.entry,) = json.loads(self._files["index.json"])["manifests"]
        self.manifest = json.loads(self.blob(self.entry))
        self.config = json.loads(self.blob(self.manifest["config"]))

    def blob(self, descriptor: dict[str, Any]) -> bytes:
        kind, _, digest = descriptor["digest"].partition(":")
        content = self._files[f"blobs/{kind}/{digest}"]
        assert len(content) == descriptor["size"]
        assert hashlib.sha256(content).hexdigest() == digest
        return content

    def layers(self) -> list[bytes]:
        return [gzip.decompress(self.blob(layer)) for layer in self.manifest["layers"]]

    def members(self) -> dict[str, tarfile.TarInfo]:
        found = {}
        for layer in self.layers():
            with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
                found |= {member.name: member for member in tar}
        return found


def recorded(project: Project, *before: str) -> Recording:
    (project / "data").mkdir()
    (project / "data/in.json").write_text("[1, 2, 39]")
    (project / "program.py").write_text(PROGRAM)
    (project / "log").write_text("first\n")
    project.environment |= {"COLOUR": "dark red", "MY_TOKEN": SECRET}
    words = [sys.executable, "program.py", "a b", "$c"]
    ran = subprocess.run(
        [*before, sys.executable, "-m", "clew", "exec", "--json", "--", *words],
        cwd=project.folder,
        env=project.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    return project.recording(ran.returncode, ran.stdout, ran.stderr)


def same_result(recording: Recording, image: Path, daemon: Containerd) -> None:
    """Run the image; what it says and leaves must be what was recorded, secrets aside."""
    name = daemon.load(image)
    assert name == f"docker.io/clew/{recording.id}:{recording.uid[:8]}"
    with daemon.run(name, recording.uid[:12], "--env", f"MY_TOKEN={SECRET}") as (ran, files):
        assert ran.returncode == recording.status
        assert ran.stdout == recording.out
        assert ran.stderr == recording.err
        left = [f for f in recording.show["files"] if f["written"] and f["path"].startswith("/")]
        assert left
        for file in left:
            seen = (files / file["path"].lstrip("/")).read_bytes()
            assert seen == recording.cat(file["path"]), file["path"]
    daemon.ctr("images", "rm", name)


def test_a_container_has_the_same_result(project: Project, daemon: Containerd) -> None:
    recording = recorded(project)
    assert recording.status == 7
    assert b"['a b', '$c']" in recording.out
    assert b"dark red True" in recording.out
    same_result(recording, exported(recording), daemon)


def test_a_user_without_privileges_can_do_in_it_what_it_did(
    project: Project, daemon: Containerd
) -> None:
    recording = recorded(project, "unshare", "--user", "--map-user=1234", "--map-group=4321")
    assert recording.show["environment"]["user"]["uid"] == 1234
    assert b" 1234 dark red" in recording.out
    image = exported(recording)
    assert Image(image).config["config"]["User"] == "1234:4321"
    same_result(recording, image, daemon)


def test_names_modes_times_sizes_and_links_are_as_they_were(
    project: Project, daemon: Containerd
) -> None:
    odd = os.fsencode(project.folder) + b"/not \xff utf-8 \n"
    with open(odd, "wb") as file:
        file.write(b"odd")
    (project / ("long" * 60)).write_text("long name")
    (project / "seldom").write_bytes(bytes(3_000_000))
    (project / "private").write_text("mine")
    (project / "private").chmod(0o600)
    (project / "link").symlink_to("private")
    os.utime(project / "private", ns=(1, 1_234_567_890_123_456_789))
    project.environment["TZ"] = "UTC0"
    recording = project.sh(
        "cat not* long* link | tee all; stat -c '%n %a %s %y' seldom private; readlink link; ls"
    )
    assert recording.status == 0
    assert b"seldom 644 3000000" in recording.out
    assert b"private 600 4 2009-02-13 23:31:30.123456789" in recording.out
    same_result(recording, exported(recording), daemon)


def test_other_programs_read_it(project: Project, tmp_path: Path) -> None:
    needed("skopeo")
    recording = recorded(project)
    image = exported(recording)
    config = json.loads(_skopeo("inspect", "--config", f"oci-archive:{image}"))
    assert config["config"]["Cmd"] == [sys.executable, "program.py", "a b", "$c"]
    assert config["config"]["WorkingDir"] == str(project.folder)
    assert "COLOUR=dark red" in config["config"]["Env"]
    assert config["config"]["Labels"]["clew.execution"] == recording.uid
    # copying checks every digest, of the layers and of what is compressed in them
    _skopeo("copy", f"oci-archive:{image}", f"dir:{tmp_path}/copy")
    _skopeo("copy", f"docker-archive:{image}", f"dir:{tmp_path}/docker")


def _skopeo(*words: str) -> bytes:
    ran = subprocess.run(
        ["skopeo", "--insecure-policy", *words], capture_output=True, stdin=subprocess.DEVNULL
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout


def test_it_holds_what_was_needed_and_nothing_else(project: Project) -> None:
    (project / "unrelated.txt").write_text("never looked at")
    (project / "in.txt").write_text("read")
    recording = project.sh("cat in.txt > out.txt")
    members = Image(exported(recording)).members()
    folder = str(project.folder).lstrip("/")
    assert members[f"{folder}/in.txt"].size == 4
    assert f"{folder}/out.txt" not in members
    assert f"{folder}/unrelated.txt" not in members
    for name in ("dev", "proc", "sys"):
        assert members[name].isdir()
    used = {path.lstrip("/") for path in recording.files if path.startswith("/")}
    assert {name for name, member in members.items() if member.isfile() and member.size} <= used


def test_secrets_are_named_and_not_held(project: Project) -> None:
    recording = recorded(project)
    ran = project.command("export", recording.id, "--format", "oci", "-o", "image.tar")
    assert b"set MY_TOKEN to run it" in ran.stderr
    image = Image(project / "image.tar")
    assert image.config["config"]["Labels"]["clew.redacted"] == "MY_TOKEN"
    assert not any(word.startswith("MY_TOKEN") for word in image.config["config"]["Env"])
    assert not any(SECRET.encode() in layer for layer in image.layers())


def test_a_secret_in_the_command_is_reported(project: Project) -> None:
    project.environment["MY_TOKEN"] = SECRET
    recording = project.exec("echo", f"--token={SECRET}")
    ran = project.command("export", recording.id, "--format", "oci", "-o", "image.tar")
    assert ran.returncode == 0
    assert b"argument 1 to run it: it held a secret" in ran.stderr
    assert Image(project / "image.tar").config["config"]["Cmd"] == ["echo", "--token=***"]


def test_standard_input_is_to_be_given_again(project: Project) -> None:
    (project / "in.txt").write_text("b\na\n")
    piped = project.exec("sort", input=b"b\na\n")
    with open(project / "in.txt") as file:
        redirected = project.exec("sort", stdin=file)
    for recording, name in ((piped, "stdin"), (redirected, f"{project / 'in.txt'}@input")):
        told = project.command("export", recording.id, "--format", "oci", "-o", "image.tar").stderr
        assert f"clew cat {recording.id}:{name}\n" in told.decode()
        assert project.command("cat", f"{recording.id}:{name}").stdout == b"b\na\n"
    none = project.command("export", project.sh("true").id, "--format", "oci", "-o", "image.tar")
    assert none.stderr == b"wrote image.tar\n"


def test_the_same_record_is_the_same_image(project: Project, tmp_path: Path) -> None:
    (project / "in.txt").write_text("one")
    first = project.sh("sort in.txt > out.txt")
    image = exported(first)
    assert exported(first, "again.tar").read_bytes() == image.read_bytes()
    streamed = project.command("export", first.id, "--format", "oci")
    assert streamed.stdout == image.read_bytes()
    # elsewhere it has another number, and is still the same
    other = Project(tmp_path / "elsewhere", **_graph(project))
    other.sh("true")
    assert project.command("push", str(tmp_path / "shared"), first.id).returncode == 0
    assert other.command("pull", str(tmp_path / "shared")).returncode == 0
    there = other.command("export", first.uid, "--format", "oci", "-o", "image.tar")
    assert there.returncode == 0, there.stderr
    pulled = Image(other / "image.tar")
    assert pulled.entry["digest"] == Image(image).entry["digest"]


def _graph(project: Project) -> dict[str, str]:
    return {n: v for n, v in project.environment.items() if n == "CLEW_GRAPH"}


def test_executions_of_the_same_programs_share_layers(project: Project) -> None:
    (project / "in.txt").write_text("one")
    before = Image(exported(project.sh("sort in.txt > out.txt"), "a.tar"))
    (project / "in.txt").write_text("two")
    (project / "out.txt").unlink()
    after = Image(exported(project.sh("sort in.txt > out.txt"), "b.tar"))
    assert before.manifest["layers"][0] == after.manifest["layers"][0]
    assert before.manifest["layers"][-1] != after.manifest["layers"][-1]


def test_what_cannot_be_written(project: Project) -> None:
    recording = project.sh("true")
    full = project.command("export", recording.id, "--format", "oci", "-o", "/dev/full", "--json")
    assert json.loads(full.stdout)["error"]["code"] == "disk-full"
    (project / "taken").mkdir()
    (project / "old.tar").write_text("old")
    lost = project.command("export", "e9", "--format", "oci", "-o", "old.tar")
    assert lost.returncode == 5
    assert (project / "old.tar").read_text() == "old"
    nowhere = project.command("export", recording.id, "--format", "oci", "-o", "no/such/place")
    assert nowhere.returncode == 5
    assert sorted(path.name for path in project.folder.iterdir()) == [".clew", "old.tar", "taken"]
    assert not any((project / ".clew/spool").iterdir())
