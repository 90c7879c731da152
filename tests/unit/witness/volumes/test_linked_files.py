"""Several names of one file on a volume."""

import msgspec
import pytest
from tests.unit.witness.volumes.accesses import (
    CLAIM,
    FOREIGN,
    LOCAL,
    MAIN,
    OTHER,
    POD,
    SECOND,
    STATE,
    answer,
    brief,
    fold_of,
    read,
    run,
    write,
)

from clew.documents.ids import Uid
from clew.prov.cluster.watch_declarations import UNWATCHED
from clew.prov.events import Content, Gap, Looked, Version
from clew.witness.volumes.accesses import (
    FileAccess,
)

LINKED = msgspec.structs.replace(STATE, links=2)


def linked(container: Uid, path: bytes, **more: object) -> FileAccess:
    return read(container, path, **{"handle": b"h", "state": LINKED, **more})


@pytest.mark.parametrize("known", [True, False])
def test_another_name_of_a_file_has_the_maker_of_the_file(known: bool) -> None:
    fold = fold_of(LOCAL)
    run(fold, write(FOREIGN, b"/a", handle=b"h"))
    (request,) = fold.take_requests()
    if known:
        fold.answer(request, answer(request))
    events = run(fold, linked(MAIN, b"/b"))
    other = CLAIM.locate(b"/b")
    assert brief(events) == [
        ("Generated", "link", Version(other, FOREIGN, 1)),
        ("Used", "open", Version(other, POD, 1)),
    ]
    assert events[0].at < events[-1].at
    late = [] if known else fold.answer(request, answer(request))
    found = {e.version for e in (*events, *late) if isinstance(e, Content)}
    assert found >= {Version(other, FOREIGN, 1), Version(other, POD, 1)}
    longer = msgspec.structs.replace(LINKED, size=9, mtime=20)
    assert brief(run(fold, linked(MAIN, b"/b", read=False, written=True, state=longer)))[0] == (
        "Generated", "write", Version(other, MAIN, 2),
    )  # fmt: skip
    assert brief(run(fold, linked(FOREIGN, b"/a", state=longer))) == [
        ("Generated", "link", Version(CLAIM.locate(b"/a"), MAIN, 1)),
        ("Used", "open", Version(CLAIM.locate(b"/a"), OTHER, 2)),
    ]


def test_a_link_to_a_file_that_was_there_is_a_use_of_that_file() -> None:
    fold = fold_of()
    run(fold, linked(FOREIGN, b"/a", state=STATE))
    for container in (MAIN, SECOND):
        assert brief(run(fold, linked(container, b"/b"))) == [
            ("Used", "link", Version(CLAIM.locate(b"/a"), POD, 1)),
            ("Used", "open", Version(CLAIM.locate(b"/b"), POD, 1)),
        ]


def test_a_link_whose_other_names_are_not_known_makes_the_reader_unwatched() -> None:
    events = run(fold_of(), linked(MAIN, b"/b"), linked(MAIN, b"/c", handle=b"i"))
    (gap,) = [e for e in events if isinstance(e, Gap)]
    assert (gap.what, gap.locator) == ("other names of a file", CLAIM.locate(b"/b"))
    assert [(e.kind, e.locator) for e in events if isinstance(e, Looked)] == [
        (UNWATCHED, CLAIM.whole)
    ]
