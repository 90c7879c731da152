"""Which process diverged first: from planted facts, and never from names."""

import pytest
from tests.unit.replay.explain.divergent_records import Tell, both, details, explained, why
from tests.unit.replay.record_builder import RecordBuilder, read

from clew.prov.queries.execution_record import Edge
from clew.replay.compare.output_comparison import compare
from clew.replay.compare.volatile_rules import BUILT_IN
from clew.replay.explain.divergence import find_divergence


def test_nothing_differs() -> None:
    a, b = both(lambda run, _: run.writes(run.process("sh"), "/w/x", b"1") and None)
    assert find_divergence(a, b, compare(a, b, read, BUILT_IN), read, BUILT_IN) is None


def test_differences_that_rules_ignore_have_no_cause() -> None:
    a, b = both(lambda run, n: run.writes(run.process("sh"), "/w/x.log", b"09:00:0%d" % n) and None)
    assert find_divergence(a, b, compare(a, b, read, BUILT_IN), read, BUILT_IN) is None


def three_steps(chance: str) -> Tell:
    """prep → train → plot; the step named `chance` does not do the same on the same."""

    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        text = b"raw"
        run.reads(shell, "/w/run.sh", b"script")
        for step, source, target in (
            ("prep", "/w/raw", "/w/clean"),
            ("train", "/w/clean", "/w/model"),
            ("plot", "/w/model", "/w/figure"),
        ):
            process = run.process("python", f"{step}.py", parent=shell)
            run.reads(process, f"/w/{step}.py", step.encode())
            run.reads(process, source, b"raw")
            text += b"%d" % n if step == chance else b"."
            run.writes(process, target, text)
            run.ends(process)

    return tell


@pytest.mark.parametrize("step", ["prep", "train", "plot"])
def test_the_first_of_a_chain(step: str) -> None:
    assert why(*both(three_steps(step))) == (f"python {step}.py", ["random", "clock"])


def test_an_input_from_outside() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        prep = run.process("python", "prep.py", parent=shell)
        run.reads(prep, "/w/data.csv", b"%d" % n)
        run.writes(prep, "/w/clean", b"%d" % n)
        train = run.process("python", "train.py", parent=shell)
        run.reads(train, "/w/clean")
        run.writes(train, "/w/model", b"%d" % n)

    a, b = both(tell)
    assert why(a, b) == ("python prep.py", ["input"])
    assert details(a, b) == ["/w/data.csv differs"]


def test_an_argument_from_outside() -> None:
    runs = []
    for number, rate in ((1, "0.1"), (2, "0.2")):
        run = RecordBuilder("python", "train.py", rate, number=number)
        run.writes(run.process("python", "train.py", rate), "/w/model", rate.encode())
        runs.append(run.record())
    assert why(*runs) == ("python train.py 0.2", ["argument"])
    assert details(*runs) == ["argument 2: 0.1 → 0.2"]


def test_an_argument_from_a_shell_that_made_it_up() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        train = run.process("python", "train.py", str(n), parent=shell)
        run.writes(train, "/w/model", b"%d" % n)

    assert why(*both(tell)) == ("sh run.sh", ["random", "clock"])


def test_an_argument_that_the_shell_read_from_another_process() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        date = run.process("date", parent=shell)
        run.passes(date, shell)
        run.ends(date)
        train = run.process("python", "train.py", str(n), parent=shell)
        run.writes(train, "/w/model", b"%d" % n)
        run.ends(train)

    a, b = both(tell)
    assert why(a, b)[0] == "sh run.sh"
    others = [suspect.pair.b.command for suspect in explained(a, b).suspects[1:]]
    assert others == [["date"]]
    assert "the data that e2.p2 passed to it may" in details(a, b)[0]


def test_later_events_are_not_a_cause() -> None:
    """The shell's last child fails in one run; what the shell did before cannot come of that."""

    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        run.writes(shell, "/w/x", b"%d" % n)
        last = run.process("check", parent=shell)
        run.ends(last, status=n)

    assert why(*both(tell))[0] == "sh run.sh"


def test_a_child_that_failed_is_a_reason() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        check = run.process("check", parent=shell)
        run.reads(check, "/w/list", b"%d" % n)
        run.ends(check, status=n)
        run.writes(shell, "/w/x", b"%d" % n)

    assert why(*both(tell)) == ("check", ["input"])


def test_a_variable_that_a_parent_set() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        train = run.process("train", parent=shell, SEED=str(n))
        run.writes(train, "/w/x", b"%d" % n)

    assert why(*both(tell)) == ("sh run.sh", ["random", "clock"])


def test_a_listing_with_what_another_process_made() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        split = run.process("split", parent=shell)
        if n == 2:
            run.writes(split, "/w/data/b", b"b")
        run.ends(split)
        train = run.process("train", parent=shell)
        run.lists(train, "/w/data", "a", *(["b"] if n == 2 else []))
        run.writes(train, "/w/x", b"%d" % n)

    assert why(*both(tell)) == ("split", ["random", "clock"])


def test_names_are_no_facts() -> None:
    """Files called after causes, of which only the last step does not do the same on the same."""

    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "network.sh")
        seeded = run.process("python", "random.py", parent=shell)
        run.reads(seeded, "/w/random.py", b"seeded")
        run.reads(seeded, "/w/dev/urandom", b"a file of that name")
        run.writes(seeded, "/w/clock.log", b"the same")
        run.ends(seeded)
        unseeded = run.process("python", "stable.py", parent=shell)
        run.reads(unseeded, "/w/clock.log")
        run.writes(unseeded, "/w/constant", b"%d" % n)

    a, b = both(tell)
    assert why(a, b) == ("python stable.py", ["random", "clock"])
    assert details(a, b)[0] == "none of its recorded inputs differ"


def racing(run: RecordBuilder, n: int) -> None:
    """Two at once, appending to one file; the second run has them the other way round."""
    shell = run.process("sh", "run.sh")
    pair = [run.process("add", word, parent=shell) for word in ("a", "b")]
    first, second = pair if n == 1 else reversed(pair)
    old = run.writes(first, "/w/log", None)
    run.used.append(Edge(second, old, run.now(), "append"))
    run.writes(second, "/w/log", b"ab" if n == 1 else b"ba")


def test_a_race_of_two_writers() -> None:
    a, b = both(racing)
    named, causes = why(a, b)
    assert named in ("add a", "add b")
    assert causes == ["order"]


def test_a_reader_that_came_too_early() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        writer = run.process("writer", parent=shell)
        reader = run.process("reader", parent=shell)
        if n == 1:
            run.writes(writer, "/w/data", b"data")
            run.reads(reader, "/w/data")
        else:
            run.looks(reader, "absent", "/w/data", "ENOENT")
            run.writes(writer, "/w/data", b"data")
        run.writes(reader, "/w/x", b"%d" % n)

    assert why(*both(tell)) == ("reader", ["order"])


def test_lines_of_a_stream_in_another_order() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        pair = [run.process("say", word, parent=shell) for word in ("a", "b")]
        run.prints(b"a\nb\n" if n == 1 else b"b\na\n", shell, *pair)
        for process in pair:
            run.ends(process)

    named, causes = why(*both(tell))
    assert named in ("say a", "say b")
    assert causes == ["order"]


def test_a_stream_belongs_to_the_children_not_to_the_shell_that_holds_it() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        say = run.process("python", "say.py", parent=shell)
        run.prints(b"%d" % n, shell, say)
        run.ends(say)

    assert why(*both(tell))[0] == "python say.py"


def test_of_many_that_hold_a_stream_the_one_with_a_reason() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        first = run.process("echo", parent=shell)
        run.ends(first)
        second = run.process("python", "say.py", parent=shell)
        run.reads(second, "/w/data", b"%d" % n)
        run.prints(b"%d" % n, shell, first, second)
        run.ends(second)

    assert why(*both(tell)) == ("python say.py", ["input"])


def test_the_process_that_wrote_the_differing_part_of_the_output() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        words = [b"one\n", b"%d%d\n" % (n, n), b"three\n"]
        speakers = [run.process("say", str(k), parent=shell) for k in range(3)]
        since = 0
        for speaker, word in zip(speakers, words, strict=True):
            run.printed(speaker, since, since + len(word))
            run.ends(speaker)
            since += len(word)
        run.printed(shell, 0, since)
        run.prints(b"".join(words), shell, *speakers)

    a, b = both(tell)
    assert why(a, b)[0] == "say 1"
    assert len(explained(a, b).suspects) == 1


def test_the_shell_itself_printed_it() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        child = run.process("say", parent=shell)
        run.printed(child, 0, 4)
        run.printed(shell, 0, 6)
        run.ends(child)
        run.prints(b"one\n%d\n" % n, shell, child)

    assert why(*both(tell))[0] == "sh run.sh"


def test_files_tell_more_than_streams() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        talker = run.process("echo", parent=shell)
        run.ends(talker)
        writer = run.process("python", "w.py", parent=shell)
        run.writes(writer, "/w/x", b"%d" % n)
        run.prints(b"%d" % n, shell, talker, writer)

    assert why(*both(tell))[0] == "python w.py"


def test_a_file_that_was_moved_is_its_makers_work() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        train = run.process("train", parent=shell)
        draft = run.writes(train, "/w/draft", None)
        run.ends(train)
        move = run.process("mv", "draft", "model", parent=shell)
        run.renames(move, draft, "/w/model", b"%d" % n)

    assert why(*both(tell))[0] == "train"


def test_an_equivalent_file_may_be_the_reason() -> None:
    """The log differs in times alone; whoever hashed it made a real difference of that."""

    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        train = run.process("train", parent=shell)
        run.writes(train, "/w/x.log", b"09:00:0%d" % n)
        run.ends(train)
        check = run.process("sha256sum", parent=shell)
        run.reads(check, "/w/x.log")
        run.writes(check, "/w/sums", b"%d" % n)

    a, b = both(tell)
    assert [suspect.pair.b.command[0] for suspect in explained(a, b).suspects] == [
        "sha256sum",
        "train",
    ]


def test_a_pipe_leads_to_its_writer() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        make = run.process("make", parent=shell)
        run.reads(make, "/w/data", b"%d" % n)
        sort = run.process("sort", parent=shell)
        run.passes(make, sort)
        run.writes(sort, "/w/x", b"%d" % n)

    a, b = both(tell)
    assert why(a, b) == ("make", ["input"])


def test_the_status_alone() -> None:
    runs = []
    for number in (1, 2):
        run = RecordBuilder("sh", number=number)
        shell = run.process("sh")
        run.reads(shell, "/w/flag", b"%d" % number)
        last = run.becomes(shell, "python", "end.py")
        run.ends(last, status=number)
        runs.append(run.record(status=number))
    assert why(*runs)[0] == "python end.py"


def test_unrelated_executions() -> None:
    a, b = RecordBuilder("ls", number=1), RecordBuilder("python", "x.py", number=2)
    a.prints(b"a", a.process("ls"))
    b.prints(b"b", b.process("python", "x.py"))
    assert why(a.record(), b.record()) == ("python x.py", ["argument"])


def test_the_ids_of_both() -> None:
    a, b = both(lambda run, n: run.writes(run.process("train"), "/w/x", b"%d" % n) and None)
    document = explained(a, b).describe().as_json()
    assert (document["process"], document["of"]) == ("e2.p1", "e1.p1")
    assert {cause["confidence"] for cause in document["causes"]} == {"candidate"}
