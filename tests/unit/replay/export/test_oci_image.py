"""What an image's layers hold, whose it is, and that they are archives."""

import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.replay.portable_executions import DIRECTORY, FILE, PROGRAM, link, portable

from clew.errors import ClewError, Damaged
from clew.replay.export.oci_image import split_layers, tar_layer, write_image
from clew.replay.export.portability import PortableExecution
from clew.replay.sandbox.initial_files import Entry

DEB = "pkg:deb/debian/tool@1"
PYPI = "pkg:pypi/numpy@2"


def read(digest: str) -> list[bytes]:
    return [b"ab", b"c"]


def paths(execution: PortableExecution) -> dict[str, set[str]]:
    return {la.title: {os.fsdecode(p) for p, e in la.entries} for la in split_layers(execution)}


def test_what_is_shared_lies_below_what_changes() -> None:
    execution = portable(
        {
            "/lib": link("usr/lib"),
            "/usr/bin/tool": PROGRAM,
            "/usr/lib/cache": FILE,
            "/home/me/.venv/lib/python3.11/site-packages/numpy/core.py": FILE,
            "/home/me/.venv/lib/python3.11/site-packages/other.py": Entry("stub"),
            "/home/me/project/data.csv": FILE,
            "/home/me/project/results": DIRECTORY,
        },
        packages={
            "/usr/bin/tool": DEB,
            "/home/me/.venv/lib/python3.11/site-packages/numpy/core.py": PYPI,
        },
    )
    found = paths(execution)
    assert list(found) == ["system", "packages", "files"]
    assert {"/lib", "/usr", "/usr/bin", "/usr/bin/tool", "/usr/lib/cache"} <= found["system"]
    assert "/home" not in found["system"]
    assert "/home/me/.venv/lib/python3.11/site-packages/other.py" in found["packages"]
    assert found["files"] >= {"/home", "/home/me/project/data.csv", "/home/me/project/results"}
    assert found["files"] >= {"/dev", "/proc", "/sys"}
    assert "/usr" not in found["files"]


@given(st.dictionaries(st.sampled_from(["/usr/a", "/usr/a/b", "/x", "/x/y", "/x/y/z"]), st.none()))
def test_every_path_is_in_a_layer_below_its_directory(names: dict[str, None]) -> None:
    deepest = [n for n in names if not any(o.startswith(n + "/") for o in names)]
    execution = portable(dict.fromkeys(deepest, FILE))
    found = split_layers(execution)
    assert {p for la in found for p, _ in la.entries} >= execution.plan.initial_files.entries.keys()
    for layer in found:
        seen = {b"/"}
        for path, _ in layer.entries:
            assert os.path.dirname(path) in seen
            seen.add(path)


def test_an_archive_is_read_back() -> None:
    when = 1_234_567_890_123_456_789
    entries = {
        "/home/me/a": Entry("file", mode=0o640, mtime=when, size=3, digest="x"),
        "/home/me/empty": Entry("stub", mode=0o600, size=100_000),
        "/home/me/link": link("a"),
        "/home/me/\udcff\n" + "long" * 50: FILE,
    }
    execution = portable(entries, user=(1000, 100))
    (layer,) = split_layers(execution)
    whole = b"".join(tar_layer(layer, execution, read))
    assert whole == b"".join(tar_layer(layer, execution, read))
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        members = {member.name: member for member in tar}
        assert tar.extractfile("home/me/a").read() == b"abc"  # type: ignore[union-attr]
        assert tar.extractfile("home/me/empty").read() == bytes(100_000)  # type: ignore[union-attr]
    assert set(members) == {p[1:] for p in map(os.fsdecode, dict(layer.entries))}
    assert members["home/me/a"].pax_headers["mtime"] == "1234567890.123456789"
    assert members["home/me/a"].mode == 0o640
    assert members["home/me/link"].linkname == "a"
    assert {(m.uid, m.gid) for m in members.values() if m.name.startswith("home")} == {(1000, 100)}


def test_a_file_of_another_size_is_refused() -> None:
    execution = portable({"/home/me/a": Entry("file", size=4, digest="x")})
    with pytest.raises(Damaged):
        list(tar_layer(split_layers(execution)[0], execution, read))


@pytest.mark.parametrize(
    ("path", "entry", "owned"),
    [
        ("/usr/bin/tool", PROGRAM, (0, 0, 0o755)),
        ("/usr/bin/su", Entry("file", mode=0o4755), (0, 0, 0o755)),
        ("/etc/shadow", Entry("file", mode=0o640), (1000, 100, 0o640)),
        ("/var/lib/state", FILE, (1000, 100, 0o644)),
        ("/var/lib", DIRECTORY, (1000, 100, 0o755)),
        ("/usr", DIRECTORY, (0, 0, 0o755)),
        ("/var/lib/closed", Entry("directory", mode=0o070), (1000, 100, 0o770)),
        ("/home/me/mine", Entry("file", mode=0o444), (1000, 100, 0o444)),
        ("/home/me/run", Entry("file", mode=0o055), (1000, 100, 0o555)),
        ("/home/me/changed", Entry("file", mode=0o464), (1000, 100, 0o664)),
        ("/tmp", Entry("directory", mode=0o1777), (1000, 100, 0o1777)),
    ],
)
def test_the_user_may_do_again_what_it_did(
    path: str, entry: Entry, owned: tuple[int, int, int]
) -> None:
    written = ("/var/lib", "/var/lib/state", "/home/me/changed", "/tmp")
    execution = portable({path: entry}, packages={"/usr/bin/tool": DEB}, written=written)
    assert execution.ownership(os.fsencode(path), entry) == owned
    as_root = portable({path: entry}, user=(0, 0), written=written)
    assert as_root.ownership(os.fsencode(path), entry)[:2] == (0, 0)


def test_an_image_is_not_as_large_as_a_record_claims(tmp_path: Path) -> None:
    execution = portable({"/home/me/huge": Entry("stub", size=1 << 62)})
    with pytest.raises(ClewError, match="too much for an image"):
        write_image(execution, io.BytesIO(), read=lambda _: [], scratch=tmp_path)
