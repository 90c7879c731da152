"""Contents of files that the Pod still changes: what is read is bounded by what was there."""

import os
from collections import Counter
from pathlib import Path

from clew.agents.node.content_queue import MAX_WAITING, SMALL_BYTES, ContentQueue
from clew.agents.node.content_reader import OpenContent
from clew.agents.node.kernel.volume_mount import VolumeMount, read_state
from clew.agents.spool import Spool
from clew.documents.ids import Locator, Uid
from clew.prov.events import Version
from clew.witness.volumes.accesses import ContentRequest


class DirectoryMount(VolumeMount):
    """Opens files by their names, which takes no rights."""

    def open(self, handle: bytes, flags: int, path: bytes = b"") -> int:
        return os.open(handle, flags, dir_fd=self.root)


def make_mount(directory: Path) -> DirectoryMount:
    return DirectoryMount(os.open(directory, os.O_RDONLY | os.O_DIRECTORY))


def request(mount: VolumeMount, name: bytes) -> ContentRequest:
    descriptor = mount.open(name, os.O_RDONLY)
    state = read_state(descriptor)
    os.close(descriptor)
    uid = Uid("0" * 32)
    version = Version(Locator("pvc://ns/claim@pv/x"), uid, 1)
    return ContentRequest(
        at=0, container=uid, volume="v", path=name, handle=name, state=state, version=version,
        generation=1,
    )  # fmt: skip


def test_a_file_that_grows_while_it_is_read_is_not_read_on(tmp_path: Path) -> None:
    path, mount = tmp_path / "x", make_mount(tmp_path)
    path.write_bytes(b"small")
    content = OpenContent(mount, request(mount, b"x"))
    os.truncate(path, 1 << 40)
    assert sum(map(len, content.blocks())) <= SMALL_BYTES
    assert content.changed
    assert content.answer is None
    content.close()
    mount.close()


def test_only_so_many_large_files_are_held_open(tmp_path: Path) -> None:
    mount, counts = make_mount(tmp_path), Counter[str]()
    (tmp_path / "x").touch()
    os.truncate(tmp_path / "x", SMALL_BYTES + 1)
    asked = request(mount, b"x")
    spool = Spool(tmp_path / "spool")
    contents = ContentQueue(spool, counts)
    found = [contents.read_small(mount, asked, store=False) for _ in range(MAX_WAITING + 2)]
    assert [one.queued for one in found[:MAX_WAITING]] == [True] * MAX_WAITING
    assert [one.too_many for one in found[MAX_WAITING:]] == [True, True]
    assert counts["contents_skipped"] == 2
    contents.start()
    contents.stop()
    answers = 0
    while contents.busy:
        answers += len(contents.finished())
    assert answers == MAX_WAITING
    spool.close()
    mount.close()
