"""Events of several queues get the one order that explains what is on the volume."""

from clew.documents.ids import Uid
from clew.witness.volumes.access_order import order_accesses, put_in_time
from clew.witness.volumes.accesses import Access, FileAccess, FileRemoval, FileRename

WRITER, READER = Uid("a/writer"), Uid("b/reader")


def access(container: Uid, path: bytes, handle: bytes, *, written: bool, at: int = 7) -> FileAccess:
    return FileAccess(
        at=at,
        container=container,
        volume="v",
        path=path,
        handle=handle,
        read=not written,
        written=written,
    )


def rename(path: bytes, target: bytes, handle: bytes) -> FileRename:
    return FileRename(at=7, container=WRITER, volume="v", path=path, target=target, handle=handle)


def test_a_reader_comes_after_the_writer_of_its_file() -> None:
    read = access(READER, b"/f", b"F", written=False)
    other = access(READER, b"/g", b"G", written=False)
    write = access(WRITER, b"/f", b"F", written=True)
    assert order_accesses([[other, read], [write]]) == ([other, write, read], [])


def test_a_rename_comes_between_the_accesses_to_the_old_and_the_new_name() -> None:
    write = access(WRITER, b"/tmp", b"F", written=True)
    read = access(READER, b"/final", b"F", written=False)
    name = rename(b"/tmp", b"/final", b"F")
    assert order_accesses([[read], [write]], [name], due=0) == ([write, name, read], [])
    assert order_accesses([[write]], [name], due=0) == ([write], [name])
    assert order_accesses([], [name], due=1) == ([name], [])


def test_a_removed_file_and_its_successor_of_the_same_name_are_two() -> None:
    write = access(WRITER, b"/f", b"1", written=True)
    again = access(WRITER, b"/f", b"2", written=True)
    gone = FileRemoval(at=7, container=WRITER, volume="v", path=b"/f", handle=b"1")
    assert order_accesses([[write, again]], [gone], due=0) == ([write, gone, again], [])


def test_a_renamed_directory_comes_between_the_accesses_below_its_names() -> None:
    write = access(WRITER, b"/tmp/d/f", b"F", written=True)
    read = access(READER, b"/out/d/f", b"F", written=False)
    name = FileRename(
        at=7, container=None, volume="v", path=b"/tmp", target=b"/out", handle=b"D", directory=True
    )
    assert order_accesses([[read], [write]], [name], due=0) == ([write, name, read], [])


def test_queues_that_wait_for_each_other_still_give_everything_once() -> None:
    first: list[Access] = [
        access(WRITER, b"/a", b"A", written=False),
        access(WRITER, b"/b", b"B", written=True),
    ]
    second: list[Access] = [
        access(READER, b"/b", b"B", written=False),
        access(READER, b"/a", b"A", written=True),
    ]
    merged, _ = order_accesses([first, second])
    assert sorted(map(repr, merged)) == sorted(map(repr, first + second))


def test_times_agree_with_the_order_and_an_earlier_opening_keeps_its_time() -> None:
    early = access(READER, b"/f", b"F", written=False, at=3)
    accesses = [access(WRITER, b"/f", b"F", written=True, at=at) for at in (3, 12, 10, 10)]
    assert [one.at for one in put_in_time([early, *accesses], 10, after=4)] == [3, 5, 12, 13, 14]
