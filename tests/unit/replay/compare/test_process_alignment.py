"""Which process is which: by words, by likeness, by order; with more on one side."""

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.replay.record_builder import RecordBuilder

from clew.replay.compare.process_alignment import align_processes


def shell(number: int, *commands: str, program: str = "sh") -> RecordBuilder:
    """A shell that starts these, one after the other."""
    run = RecordBuilder(program, "run.sh", number=number)
    top = run.process(program, "run.sh")
    for command in commands:
        run.process(*command.split(), parent=top)
    return run


def paired(a: RecordBuilder, b: RecordBuilder) -> list[tuple[str, str]]:
    found = align_processes(a.record(), b.record())
    return [(" ".join(p.a.command), " ".join(p.b.command)) for p in found.pairs[2:]]


def test_the_same_trees() -> None:
    assert paired(shell(1, "a", "b"), shell(2, "a", "b")) == [("a", "a"), ("b", "b")]


def test_racing_children_in_either_order() -> None:
    a, b = shell(1, "py a.py", "py b.py"), shell(2, "py b.py", "py a.py")
    assert paired(a, b) == [("py a.py", "py a.py"), ("py b.py", "py b.py")]


def test_one_side_has_more() -> None:
    a, b = shell(1, "prep", "train", "plot"), shell(2, "train", "check", "plot")
    found = align_processes(a.record(), b.record())
    assert [p.a.command for p in found.pairs[2:]] == [["train"], ["plot"]]
    assert [p.command for p in found.only_a] == [["prep"]]
    assert [p.command for p in found.only_b] == [["check"]]


def test_changed_words_are_paired_by_likeness() -> None:
    a = shell(1, "py train.py --lr 1 --out a", "py plot.py a")
    b = shell(2, "py plot.py b", "py extra.py", "py train.py --lr 2 --out a")
    assert paired(a, b) == [
        ("py train.py --lr 1 --out a", "py train.py --lr 2 --out a"),
        ("py plot.py a", "py plot.py b"),
    ]


def test_names_made_up_on_the_way_do_not_matter() -> None:
    a = shell(1, "cc /tmp/tmpx81k.c", "ld /tmp/cc81f0aa.o")
    b = shell(2, "ld /tmp/cc99e1bb.o", "cc /tmp/tmpqqq2.c")
    assert [(x.split()[0], y.split()[0]) for x, y in paired(a, b)] == [("cc", "cc"), ("ld", "ld")]


def test_the_same_command_many_times() -> None:
    a, b = shell(1, *["work"] * 5), shell(2, *["work"] * 3)
    found = align_processes(a.record(), b.record())
    assert [p.a.number for p in found.pairs[2:]] == [2, 3, 4]
    assert [p.number for p in found.only_a] == [5, 6]


def test_roots_belong_together_whatever_they_are() -> None:
    found = align_processes(shell(1, "a").record(), shell(2, "b", program="python").record())
    assert [(p.a.command[0], p.b.command[0]) for p in found.pairs] == [
        ("sh", "python"),
        ("sh", "python"),
    ]
    assert [p.command for p in found.only_a] == [["a"]]


def test_a_program_with_another_parent() -> None:
    a = shell(1, "cc x.c")
    b = RecordBuilder("sh", "run.sh", number=2)
    top = b.process("sh", "run.sh")
    wrapper = b.process("nice", "cc", "x.c", parent=top)
    b.process("cc", "x.c", parent=wrapper)
    assert paired(a, b) == [("cc x.c", "cc x.c")]


def test_another_version_of_the_interpreter() -> None:
    runs = []
    for number, exe in ((1, "/usr/bin/python3.11"), (2, "/usr/bin/python3.12")):
        run = shell(number, "python a.py", "python b.py")
        for key, activity in run.activities.items():
            if activity.command[0] == "python":
                run.activities[key] = activity._replace(exe=exe)
        runs.append(run)
    assert paired(*runs) == [("python a.py",) * 2, ("python b.py",) * 2]


def test_forked_children_follow_their_parents() -> None:
    runs = []
    for number, word in ((1, "x"), (2, "y")):
        run = RecordBuilder("sh", word, number=number)
        top = run.process("sh", word)
        run.process("sh", word, parent=top, forked=True)
        runs.append(run)
    assert paired(*runs) == [("sh x", "sh y")]


COMMANDS = st.lists(st.sampled_from(["a", "b", "a 1", "a 2", "c tmpx", "c tmpy"]), max_size=8)


@given(COMMANDS, COMMANDS)
def test_every_process_is_aligned_once(ours: list[str], theirs: list[str]) -> None:
    a, b = shell(1, *ours).record(), shell(2, *theirs).record()
    found = align_processes(a, b)
    told_a = [p.a.key for p in found.pairs] + [p.key for p in found.only_a]
    told_b = [p.b.key for p in found.pairs] + [p.key for p in found.only_b]
    assert sorted(told_a) == sorted(a.activities)
    assert sorted(told_b) == sorted(b.activities)
    if sorted(ours) == sorted(theirs):
        assert not found.only_a
        assert not found.only_b
