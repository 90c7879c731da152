"""Killed, out of room, forbidden to write: the store stays whole and says so."""

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clew.errors import ClewError, Full, NotAllowed
from clew.store import Store

WRITER = Path(__file__).with_name("store_writer.py")
SWEEPER = """
import sys, pathlib
from clew.store import Store
with Store(pathlib.Path(sys.argv[1])) as store:
    print("ready", flush=True)
    while True:
        live = sys.stdin.readline().split()
        if not live:
            break
        print(store.gc(live), flush=True)
"""


@contextmanager
def process(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    source = Path(__file__).parents[2] / "src"
    child = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(source)},
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def kill_after(child: subprocess.Popen[bytes], seconds: float) -> list[str]:
    """Let it work, kill it at no particular moment; what it said was flushed."""
    assert child.stdout is not None
    first = child.stdout.readline()  # it has begun
    time.sleep(seconds)  # the moment of the kill is what is being varied
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate()
    lines = (first + rest).decode().split("\n")
    return lines[:-1]  # the last one may be cut


def check(path: Path, digests: list[str]) -> None:
    with Store(path) as store:
        assert store.fsck().problems == []
        for digest in digests:
            for _ in store.read(digest):
                pass


@pytest.mark.parametrize("pack", ["67108864", "200000"])
def test_a_killed_writer_leaves_what_it_flushed(tmp_path: Path, pack: str) -> None:
    source = random.Random(pack)
    digests: list[str] = []
    for seed in range(8):
        with process(str(WRITER), str(tmp_path / "s"), str(seed), pack) as child:
            digests += kill_after(child, source.random() * 0.3)
        check(tmp_path / "s", digests)
    with Store(tmp_path / "s") as store:
        store.gc(digests)
        assert [p.name for p in (tmp_path / "s" / "packs").glob(".*")] == []
        assert list((tmp_path / "s" / "leases").iterdir()) == []
    check(tmp_path / "s", digests)
    for file in (tmp_path / "s").glob("index.db*"):
        file.unlink()
    check(tmp_path / "s", digests)


def test_a_killed_sweep_loses_nothing_that_is_live(tmp_path: Path) -> None:
    source = random.Random(3)
    with process(str(WRITER), str(tmp_path / "filled"), "1", "300000") as child:
        digests = kill_after(child, 0.5)
    live = digests[::3]
    for _ in range(15):
        shutil.rmtree(tmp_path / "s", ignore_errors=True)
        shutil.copytree(tmp_path / "filled", tmp_path / "s")
        with process("-c", SWEEPER, str(tmp_path / "s")) as child:
            assert child.stdout is not None
            assert child.stdin is not None
            child.stdout.readline()
            child.stdin.write(" ".join(live).encode() + b"\n")
            child.stdin.flush()
            time.sleep(source.random() * 0.1)  # the moment of the kill is what is being varied
            child.send_signal(signal.SIGKILL)
        check(tmp_path / "s", live)
        with Store(tmp_path / "s") as store:
            store.gc(live)
            assert not any(store.has(digest) for digest in set(digests) - set(live))
        check(tmp_path / "s", live)


def test_two_writers_and_gc_at_the_same_time(tmp_path: Path) -> None:
    """Nothing is live but by lease: the sweep must leave what the living writers have put."""
    with (
        process(str(WRITER), str(tmp_path / "s"), "1", "300000") as first,
        process(str(WRITER), str(tmp_path / "s"), "1", "300000") as second,
    ):
        assert first.stdout is not None
        assert second.stdout is not None
        digests = [first.stdout.readline().decode().strip() for _ in range(50)]
        with Store(tmp_path / "s") as store:
            for _ in range(5):
                store.gc([])
                digests += [second.stdout.readline().decode().strip() for _ in range(50)]
                digests += [first.stdout.readline().decode().strip() for _ in range(50)]
            os.kill(first.pid, signal.SIGSTOP)
            os.kill(second.pid, signal.SIGSTOP)
            assert store.fsck().problems == []
            for digest in set(digests):
                for _ in store.read(digest):
                    pass
    with Store(tmp_path / "s") as store:
        store.gc([])  # both are gone, and so are their leases
        assert not any(store.has(digest) for digest in digests)
        assert list((tmp_path / "s" / "packs").iterdir()) == []


# -- no room


def fill_until_full(path: Path) -> list[str]:
    """Put and flush until there is no room; what was flushed before."""
    flushed: list[str] = []
    source = random.Random(5)
    store = Store(path)
    with pytest.raises(Full) as caught:
        while True:
            some = [store.put_bytes(source.randbytes(100_000)).digest for _ in range(20)]
            store.flush()
            flushed += some
    assert caught.value.hint
    with pytest.raises(Full):
        store.put_bytes(b"more")
    with pytest.raises(Full):
        store.flush()
    for digest in flushed:
        assert store.has(digest)
    store.close()
    return flushed


def test_a_full_disk(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk; a limit on file sizes is tested anyway")
    (tmp_path / "m").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(tmp_path / "m")]
    subprocess.run(mount, check=True)
    try:
        flushed = fill_until_full(tmp_path / "m" / "s")
        assert flushed
        check(tmp_path / "m" / "s", flushed)
        with Store(tmp_path / "m" / "s") as store:  # full, and yet room can be made
            assert store.gc(flushed[:10]).bytes > 0
            digest = store.put_bytes(b"there is room again").digest
        check(tmp_path / "m" / "s", [*flushed[:10], digest])
    finally:
        subprocess.run(["umount", str(tmp_path / "m")], check=True)


LIMITED = """
import resource, sys, pathlib
sys.path.insert(0, sys.argv[2])
import test_store_crashes as tests
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
print(*tests.fill_until_full(pathlib.Path(sys.argv[1])))
"""


def test_a_limit_on_file_sizes(tmp_path: Path) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert soft == resource.RLIM_INFINITY
    here = str(Path(__file__).parent)
    with process("-c", LIMITED, str(tmp_path / "s"), here) as child:
        out, _ = child.communicate()
        assert child.returncode == 0
    check(tmp_path / "s", out.decode().split())


# -- no permission


@contextmanager
def read_only(path: Path) -> Iterator[None]:
    """Permissions do not stop root, a read-only mount does."""
    if os.geteuid() == 0:
        subprocess.run(["mount", "--bind", str(path), str(path)], check=True)
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", str(path)], check=True)
            yield
        finally:
            subprocess.run(["umount", str(path)], check=True)
        return
    subprocess.run(["chmod", "-R", "a-w", str(path)], check=True)
    try:
        yield
    finally:
        subprocess.run(["chmod", "-R", "u+w", str(path)], check=True)


READ_ONLY = """
import sys, pathlib
from clew.errors import NotAllowed
from clew.store import Store
path, digest = pathlib.Path(sys.argv[1]), sys.argv[2]
with Store(path) as store:
    assert not store.writable
    assert store.has(digest) and b"".join(store.read(digest)) == b"content"
    assert store.fsck().problems == []
    assert store.put_file(sys.argv[3].encode(), keep=False).size == 7
    for forbidden in (lambda: store.put_bytes(b"new"), lambda: store.gc([])):
        try:
            forbidden()
        except NotAllowed:
            continue
        raise SystemExit("was allowed")
"""


@pytest.mark.parametrize("index", ["closed", "open", "lost"])
def test_a_read_only_store_can_be_read(tmp_path: Path, index: str) -> None:
    path = tmp_path / "s"
    store = Store(path)
    digest = store.put_bytes(b"content").digest
    store.flush()
    (tmp_path / "file").write_bytes(b"content")
    if index == "open":  # as a killed writer leaves it: the newest rows are in the log
        shutil.copytree(path, tmp_path / "copy")
        path = tmp_path / "copy"
    store.close()
    if index == "lost":
        (path / "index.db").unlink()
    file = str(tmp_path / "file")
    with read_only(path), process("-c", READ_ONLY, str(path), digest, file) as child:
        child.communicate()
        assert child.returncode == 0


def test_no_store_can_be_made_in_a_read_only_folder(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.mkdir()
    with read_only(path), pytest.raises(NotAllowed):
        Store(path / "s")


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    """As root nothing is unreadable, so somebody else asks."""
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "secret").chmod(0)
    if os.geteuid() != 0:
        with Store(tmp_path / "s") as store, pytest.raises(NotAllowed):
            store.put_file(os.fsencode(tmp_path / "secret"))
        return
    child = os.fork()
    if child == 0:
        status = 1
        try:
            store = Store(tmp_path / "s")
            os.setegid(65534)
            os.seteuid(65534)
            store.put_file(os.fsencode(tmp_path / "secret"))
        except NotAllowed:
            status = 0
        except ClewError:
            status = 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
