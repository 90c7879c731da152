"""Parts of the interpreter: version histories, flows between processes, symbolic links."""

import os
import socket
import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from clew.witness.syscalls.data_flows import READS, WRITES, DataFlows, peer_locator
from clew.witness.syscalls.observations import SymlinkResolver
from clew.witness.syscalls.trace_format import FileStat
from clew.witness.syscalls.version_tracker import VersionTracker

STATES = st.builds(
    lambda ino, size, mtime: FileStat(1, ino, size, mtime, mtime, 0o100644),
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
def test_a_path_has_one_history(steps: list[tuple[str, bytes, int, FileStat | None]]) -> None:
    versions = VersionTracker()
    for at, (what, path, image, file_stat) in enumerate(steps):
        before = [observed for history in versions for observed in history if observed.path == path]
        if what == "read":
            observed = versions.read(path, file_stat, at=at)
            if file_stat is not None:
                assert observed.file_stat is not None
                assert observed.file_stat[:4] == file_stat[:4]  # never a version in another state
            observed.read = True
        elif what == "write":
            last = versions.current(path)
            observed = versions.write(path, image, at=at, how="write", file_stat=file_stat)
            assert observed.maker == image
            assert image in observed.makers
            if last is not None and last.read:
                assert observed is not last  # a version that was read does not change
        elif what == "inherit":
            last = versions.current(path)
            observed = versions.inherit(path, image, 1, file_stat, at=at)
            assert observed.maker is not None
            assert image in observed.makers
        elif (current := versions.current(path)) is not None:
            current.gone = True
        after = [observed for history in versions for observed in history if observed.path == path]
        assert after[: len(before)] == before  # versions are only appended
        assert [observed.ordinal for observed in after] == list(range(1, len(after) + 1))
        assert all(not observed.gone for observed in after[-1:]) or versions.current(path) is None


def test_changing_a_file_back_makes_a_third_version() -> None:
    versions = VersionTracker()
    a, b, c = (FileStat(1, 1, 1, when, when, 0o100644) for when in (1, 2, 3))
    found = versions.read(b"/x", a, at=1)
    found.read = True
    other = versions.write(b"/x", 7, at=2, how="write", file_stat=None)
    assert versions.read(b"/x", b, at=3) is other
    other.read = True
    back = versions.write(b"/x", 8, at=4, how="write", file_stat=None)
    assert versions.read(b"/x", c, at=5) is back
    assert [observed.ordinal for observed in (found, other, back)] == [1, 2, 3]
    assert (found.maker, other.maker, back.maker) == (None, 7, 8)


@given(st.binary(max_size=130), st.sampled_from([socket.SOCK_STREAM, socket.SOCK_DGRAM, 0]))
def test_any_address_is_a_peer_or_none(address: bytes, kind: int) -> None:
    """A program can pass any bytes to the kernel."""
    found = peer_locator(address, kind)
    assert found is None or ":" in found


@given(st.ip_addresses(v=4), st.integers(0, 65535))
def test_a_locator_contains_the_address(address: object, port: int) -> None:
    raw = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port)
    raw += socket.inet_aton(str(address)) + bytes(8)
    assert peer_locator(raw, socket.SOCK_STREAM) == f"tcp://{address}:{port}"
    assert peer_locator(raw, socket.SOCK_DGRAM) == f"udp://{address}:{port}"


@given(st.lists(st.tuples(IMAGES, st.sampled_from([b"pipe:[1]", b"pipe:[2]"]), st.integers(1, 3))))
def test_flows_do_not_depend_on_the_order(ends: list[tuple[int, bytes, int]]) -> None:
    first, other = DataFlows(), DataFlows()
    for image, pipe, access in ends:
        first.add_pipe_end(image, pipe, access)
    for image, pipe, access in reversed(ends * 2):
        other.add_pipe_end(image, pipe, access)
    assert first.informed({}) == other.informed({})
    assert all(informed != by for informed, by, _ in first.informed({}))


def test_a_writer_informs_the_reader() -> None:
    flows = DataFlows()
    flows.add_pipe_end(1, b"pipe:[1]", WRITES)
    flows.add_pipe_end(2, b"pipe:[1]", READS)
    flows.add_pipe_end(3, b"pipe:[1]", READS | WRITES)  # holds both ends: not part of the flow
    assert flows.informed({}) == {(2, 1, "pipe")}


def test_finds_the_links_of_a_path(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("x")
    (tmp_path / "directory").symlink_to("real")
    (tmp_path / "last").symlink_to("directory/file")
    base = os.fsencode(tmp_path)
    found = SymlinkResolver(os.readlink).between(base + b"/last", base + b"/real/file")
    assert found == [(base + b"/last", b"directory/file"), (base + b"/directory", b"real")]


def test_a_loop_of_links_gives_no_links(tmp_path: Path) -> None:
    (tmp_path / "first").symlink_to("other")
    (tmp_path / "other").symlink_to("first")
    base = os.fsencode(tmp_path)
    assert SymlinkResolver(os.readlink).between(base + b"/first", base + b"/elsewhere") == []
    assert SymlinkResolver(os.readlink).between(base + b"/first/x", base + b"/elsewhere") == []


@given(st.text("ab/.", max_size=30), st.text("ab/.", max_size=30))
def test_any_path_is_resolved(given_: str, real: str) -> None:
    SymlinkResolver(os.readlink).between(b"/nowhere/" + given_.encode(), b"/" + real.encode())
