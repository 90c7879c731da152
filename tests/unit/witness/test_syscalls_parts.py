"""The parts the narrator decides with: lines of versions, flows between processes, links."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from clew.witness.syscalls.data_flows import READS, WRITES, DataFlows, peer_locator
from clew.witness.syscalls.symlinks import SymlinkResolver
from clew.witness.syscalls.trace_format import Facts
from clew.witness.syscalls.version_tracker import VersionTracker

STATES = st.builds(
    lambda ino, size, mtime: Facts(1, ino, size, mtime, mtime, 0o100644),
    st.integers(1, 2),
    st.integers(0, 2),
    st.integers(1, 5),
)
PATHS = st.sampled_from([b"/a", b"/b"])
IMAGES = st.integers(1, 4)
STEPS = st.one_of(
    st.tuples(st.just("read"), PATHS, IMAGES, st.none() | STATES),
    st.tuples(st.just("write"), PATHS, IMAGES, st.none() | STATES),
    st.tuples(st.just("inherit"), PATHS, IMAGES, STATES),
    st.tuples(st.just("delete"), PATHS, IMAGES, st.none()),
)


@given(st.lists(STEPS, max_size=40))
def test_a_path_has_one_line_of_versions(steps: list[tuple[str, bytes, int, Facts | None]]) -> None:
    paths = VersionTracker()
    for at, (what, path, image, facts) in enumerate(steps):
        before = [met for line in paths for met in line if met.path == path]
        if what == "read":
            met = paths.read(path, facts, at=at)
            if facts is not None:
                assert met.facts is not None
                assert met.facts[:4] == facts[:4]  # nobody is said to have read another state
            met.read = True
        elif what == "write":
            last = paths.current(path)
            met = paths.write(path, image, at=at, how="write", facts=facts)
            assert met.maker == image
            assert image in met.makers
            if last is not None and last.read:
                assert met is not last  # what was read stays what it was
        elif what == "inherit":
            last = paths.current(path)
            met = paths.inherit(path, image, 1, facts, at=at)
            assert met.maker is not None
            assert image in met.makers
        elif (there := paths.current(path)) is not None:
            there.gone = True
        after = [met for line in paths for met in line if met.path == path]
        assert after[: len(before)] == before  # versions are added at the end, none goes
        assert [met.ordinal for met in after] == list(range(1, len(after) + 1))
        assert all(not met.gone for met in after[-1:]) or paths.current(path) is None


def test_there_and_back_are_three_versions() -> None:
    paths = VersionTracker()
    a, b, again = (Facts(1, 1, 1, when, when, 0o100644) for when in (1, 2, 3))
    found = paths.read(b"/x", a, at=1)
    found.read = True
    other = paths.write(b"/x", 7, at=2, how="write", facts=None)
    assert paths.read(b"/x", b, at=3) is other
    other.read = True
    back = paths.write(b"/x", 8, at=4, how="write", facts=None)
    assert paths.read(b"/x", again, at=5) is back
    assert [met.ordinal for met in (found, other, back)] == [1, 2, 3]
    assert (found.maker, other.maker, back.maker) == (None, 7, 8)


@given(st.binary(max_size=130), st.sampled_from([socket.SOCK_STREAM, socket.SOCK_DGRAM, 0]))
def test_any_address_is_a_peer_or_none(address: bytes, kind: int) -> None:
    """A program may hand the kernel whatever it likes."""
    found = peer_locator(address, kind)
    assert found is None or ":" in found


@given(st.ip_addresses(v=4), st.integers(0, 65535))
def test_an_address_is_told_as_it_is_written(address: object, port: int) -> None:
    raw = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port)
    raw += socket.inet_aton(str(address)) + bytes(8)
    assert peer_locator(raw, socket.SOCK_STREAM) == f"tcp://{address}:{port}"
    assert peer_locator(raw, socket.SOCK_DGRAM) == f"udp://{address}:{port}"


@given(st.lists(st.tuples(IMAGES, st.sampled_from([b"pipe:[1]", b"pipe:[2]"]), st.integers(1, 3))))
def test_flows_do_not_depend_on_the_order(held: list[tuple[int, bytes, int]]) -> None:
    one, other = DataFlows(), DataFlows()
    for image, pipe, way in held:
        one.holds(image, pipe, way)
    for image, pipe, way in reversed(held * 2):
        other.holds(image, pipe, way)
    assert one.informed({}) == other.informed({})
    assert all(learnt != by for learnt, by, _ in one.informed({}))


def test_who_writes_informs_who_reads() -> None:
    flows = DataFlows()
    flows.holds(1, b"pipe:[1]", WRITES)
    flows.holds(2, b"pipe:[1]", READS)
    flows.holds(3, b"pipe:[1]", READS | WRITES)  # hands both ends on: no party to it
    assert flows.informed({}) == {(2, 1, "pipe")}


def test_links_on_the_way(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("x")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "last").symlink_to("folder/file")
    base = os.fsencode(tmp_path)
    found = SymlinkResolver(os.readlink).between(base + b"/last", base + b"/real/file")
    assert found == [(base + b"/last", b"folder/file"), (base + b"/folder", b"real")]


def test_a_loop_of_links_is_no_way(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    base = os.fsencode(tmp_path)
    assert SymlinkResolver(os.readlink).between(base + b"/one", base + b"/elsewhere") == []
    assert SymlinkResolver(os.readlink).between(base + b"/one/x", base + b"/elsewhere") == []


@given(st.text("ab/.", max_size=30), st.text("ab/.", max_size=30))
def test_any_way_is_followed_to_an_end(given_: str, real: str) -> None:
    SymlinkResolver(os.readlink).between(b"/nowhere/" + given_.encode(), b"/" + real.encode())
