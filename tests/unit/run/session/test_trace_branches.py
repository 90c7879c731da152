"""One trace, told apart by the children of its command."""

from clew.run.session.trace_branches import TraceSplitter
from clew.witness.syscalls.trace_format import (
    Exec,
    Exit,
    FileStat,
    Look,
    Open,
    Seen,
    Spawn,
    Variables,
)

FILE_STAT = FileStat(1, 2, 3, 4, 5, 0o100644)


def spawn(seq: int, image: int, parent: int) -> Spawn:
    return Spawn(seq, seq, image, parent, 1000 + image, seq)


def leaves(seq: int, image: int, status: int = 0) -> Exit:
    return Exit(seq, seq, image, status, 0, 0, 0, 0)


def test_each_child_with_all_that_came_of_it() -> None:
    sorting = TraceSplitter()
    described = Open(3, 3, 0, b"/lib", b"/lib", 0, FILE_STAT, None, 7)
    missing = Look(4, 4, 0, 3, b"/none", 2, 0, None, None, 8)
    first = [spawn(1, 1, 0), Seen(5, 5, 1, [5, 7], [])]
    assert sorting.add_records([*first, described, missing]) == []
    assert sorting.own == first
    one, two = sorting.add_records(
        [
            spawn(10, 2, 1),
            spawn(11, 3, 1),
            spawn(12, 4, 2),
            Seen(13, 13, 4, [13, 7], [8]),
            leaves(14, 3, 5),
        ]
    )
    assert (one.spawn.pid, one.living, one.over) == (1002, {2: 1002, 4: 1004}, False)
    assert (two.spawn.pid, two.living, two.over) == (1003, {}, True)
    assert two.exit is not None
    assert two.exit.status == 5
    assert sorting.add_records([leaves(20, 2)]) == [one]
    assert not one.over  # one of its own goes on
    sorting.add_records([leaves(21, 4)])
    assert one.over
    assert sorting.exit is None
    sorting.add_records([leaves(30, 1)])
    assert sorting.exit is not None


def test_a_branch_gets_back_what_it_speaks_of() -> None:
    sorting = TraceSplitter()
    described = Open(3, 3, 0, b"/lib", b"/lib", 0, FILE_STAT, None, 7)
    unmet = Open(4, 4, 0, b"/other", b"/other", 0, FILE_STAT, None, 9)
    variables = Variables(5, 5, 1, 1, [b"A=1"])
    sorting.add_records([spawn(1, 1, 0), described, unmet, variables])
    seen = Seen(13, 13, 2, [13, 7], [])
    become = Exec(14, 14, 3, 2, 1002, b"/bin/x", b"x", [b"x"], 1, b"/")
    [branch] = sorting.add_records([spawn(12, 2, 1), seen, become])
    assert branch.root == 3
    assert sorting.descriptions.complete(branch.records) == [
        described,
        variables,
        spawn(12, 2, 1),
        seen,
        become,
    ]
    [same] = sorting.add_records([leaves(20, 3)])
    assert same is branch
    assert branch.over
    sorting.forget(branch)
    assert sorting.add_records([leaves(21, 3)]) == []
