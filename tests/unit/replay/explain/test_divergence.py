"""Which process diverged first, and why: from planted facts, and never from names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.replay.record_builder import RecordBuilder, read

from clew.prov.queries.execution_record import ExecutionRecord
from clew.replay.compare.output_comparison import compare
from clew.replay.compare.volatile_rules import BUILT_IN
from clew.replay.explain.divergence import Divergence, find_divergence

Tell = Callable[[RecordBuilder, int], None]


def both(tell: Tell, *command: str, **more: Any) -> tuple[ExecutionRecord, ExecutionRecord]:
    """The same told twice: `tell` gets 1 for the first, 2 for the second."""
    runs = []
    for number in (1, 2):
        own = {name: value(number) for name, value in more.items()}
        run = RecordBuilder(*(command or ("sh", "run.sh")), number=number, **own)
        tell(run, number)
        runs.append(run.record())
    return runs[0], runs[1]


def explained(a: ExecutionRecord, b: ExecutionRecord) -> Divergence:
    found = find_divergence(a, b, compare(a, b, read, BUILT_IN), read, BUILT_IN)
    assert found is not None
    return found


def why(a: ExecutionRecord, b: ExecutionRecord) -> tuple[str, list[str]]:
    """The command that is named, and its causes."""
    document = explained(a, b).as_json()
    return " ".join(document["command"]), [cause["cause"] for cause in document["causes"]]


def details(a: ExecutionRecord, b: ExecutionRecord) -> list[str]:
    return [cause["detail"] for cause in explained(a, b).as_json()["causes"]]


def test_nothing_differs() -> None:
    a, b = both(lambda run, _: run.writes(run.process("sh"), "/w/x", b"1") and None)
    assert find_divergence(a, b, compare(a, b, read, BUILT_IN), read, BUILT_IN) is None


def test_what_rules_know_needs_no_reason() -> None:
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


def test_a_library_by_name_and_versions() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        train = run.process("python", "train.py")
        for name in ("a", "b"):
            package = f"pkg:pypi/numpy@{n}.0"
            run.reads(train, f"/site/numpy/{name}.py", b"%d" % n, package=package)
        run.reads(train, "/site/same/x.py", b"same", package="pkg:pypi/same@1.0")
        run.writes(train, "/w/model", b"%d" % n)

    a, b = both(tell)
    assert why(a, b) == ("python train.py", ["library"])
    assert details(a, b) == ["numpy 1.0 → 2.0"]


def test_a_library_changed_by_hand() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        train = run.process("python", "train.py")
        run.reads(train, "/site/numpy/a.py", b"%d" % n, package="pkg:pypi/numpy@1.0")
        run.writes(train, "/w/model", b"%d" % n)

    assert details(*both(tell)) == ["numpy 1.0, but /site/numpy/a.py differs"]


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


def test_an_argument_that_another_process_told_the_shell() -> None:
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
    assert "what e2.p2 passed on to it may" in details(a, b)[0]


def test_what_happened_later_is_no_reason() -> None:
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


def test_a_variable() -> None:
    a, b = both(
        lambda run, n: run.writes(run.process("train"), "/w/x", b"%d" % n) and None,
        variables=lambda n: {"SEED": str(n), "HOME": "/h"},
    )
    assert why(a, b) == ("train", ["variable"])
    assert details(a, b) == ["SEED: 1 → 2"]


def test_a_variable_that_a_parent_set() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        shell = run.process("sh", "run.sh")
        train = run.process("train", parent=shell, SEED=str(n))
        run.writes(train, "/w/x", b"%d" % n)

    assert why(*both(tell)) == ("sh run.sh", ["random", "clock"])


def test_a_file_that_was_absent() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        train = run.process("train")
        if n == 1:
            run.looks(train, "absent", "/w/settings", "ENOENT")
        else:
            run.reads(train, "/w/settings", b"fast")
        run.writes(train, "/w/x", b"%d" % n)

    a, b = both(tell)
    assert why(a, b) == ("train", ["input"])
    assert details(a, b) == ["/w/settings was absent, then there"]


def test_a_file_only_one_opened_is_what_it_did_not_what_it_saw() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        train = run.process("train")
        run.reads(train, f"/w/part{n}", b"part")
        run.writes(train, "/w/x", b"%d" % n)

    assert why(*both(tell)) == ("train", ["random", "clock"])


def test_an_output_that_was_there_before_is_no_reason() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        train = run.process("train")
        run.looks(train, "absent" if n == 1 else "times", "/w/x", "ENOENT" if n == 1 else "1 1 1")
        run.writes(train, "/w/x", b"%d" % n)

    assert why(*both(tell)) == ("train", ["random", "clock"])


def test_a_listing() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        train = run.process("train")
        run.lists(train, "/w/data", "a", *(["b"] if n == 2 else []))
        run.writes(train, "/w/x", b"%d" % n)

    a, b = both(tell)
    assert why(a, b) == ("train", ["listing"])
    assert details(a, b) == ["/w/data was listed with other names: +b"]


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


def test_a_link() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        train = run.process("train")
        run.looks(train, "link", "/w/current", f"v{n}")
        run.writes(train, "/w/x", b"%d" % n)

    assert details(*both(tell)) == ["the link /w/current led to v1, then to v2"]


def test_the_standard_input() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        train = run.process("train")
        run.reads(train, "stdin", b"%d" % n)
        run.writes(train, "/w/x", b"%d" % n)

    assert details(*both(tell)) == ["stdin differs"]


def test_the_network() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        fetch = run.process("fetch")
        key = run.version("/unused", None)
        run.versions[key] = run.versions[key]._replace(locator="tcp://192.0.2.1:443")
        run.used.append(run.used[-1] if run.used else _edge(run, fetch, key))
        run.writes(fetch, "/w/x", b"%d" % n)

    a, b = both(tell)
    assert why(a, b) == ("fetch", ["network"])
    assert details(a, b) == ["it spoke to tcp://192.0.2.1:443"]


def _edge(run: RecordBuilder, process: int, version: int) -> Any:
    from clew.prov.queries.execution_record import Edge

    return Edge(process, version, run.now(), "connect")


def test_the_random_device_comes_with_its_name() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        train = run.process("train")
        run.reads(train, "/dev/urandom", None)
        run.writes(train, "/w/x", b"%d" % n)

    a, b = both(tell)
    assert why(a, b) == ("train", ["random", "clock"])
    assert details(a, b)[0] == "it read /dev/urandom"


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
    assert details(a, b)[0] == "nothing that it saw differs"


def test_dates_alone_point_to_the_clock() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        run.writes(run.process("stamp"), "/w/x", b"made at 2026-11-15 09:00:0%d\n" % n)

    assert why(*both(tell)) == ("stamp", ["clock", "random"])


def test_what_was_pinned_in_both_is_no_reason() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        run.writes(run.process("train"), "/w/x", b"%d" % n)

    pins = {"clock": 1, "random": "00" * 16}
    a, b = both(tell, facets=lambda n: {"pinned": {"random": pins["random"]}})
    assert why(a, b) == ("train", ["clock"])
    a, b = both(tell, facets=lambda n: {"pinned": pins})
    assert why(a, b) == ("train", [])
    a, b = both(tell, facets=lambda n: {"pinned": {**pins, "clock": n}})
    assert why(a, b) == ("train", ["clock"])


def test_another_processor() -> None:
    a, b = both(
        lambda run, n: run.writes(run.process("train"), "/w/x", b"%d" % n) and None,
        facets=lambda n: {"cpu": {"model": f"M{n}"}, "driver": {"nvidia": "1"}},
    )
    assert why(a, b) == ("train", ["random", "clock", "cpu"])
    assert details(a, b)[-1] == "cpu: M1 → M2"


def racing(run: RecordBuilder, n: int) -> None:
    """Two at once, appending to one file; the second run has them the other way round."""
    shell = run.process("sh", "run.sh")
    pair = [run.process("add", word, parent=shell) for word in ("a", "b")]
    first, second = pair if n == 1 else reversed(pair)
    old = run.writes(first, "/w/log", None)
    run.used.append(_edge(run, second, old)._replace(how="append"))
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


def test_a_stream_is_told_of_the_children_not_of_the_shell_that_holds_it() -> None:
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


def test_whose_part_of_the_output_differs() -> None:
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


def test_a_pipe_leads_to_whoever_wrote_into_it() -> None:
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
    document = explained(a, b).as_json()
    assert (document["process"], document["of"]) == ("e2.p1", "e1.p1")
    assert {cause["confidence"] for cause in document["causes"]} == {"candidate"}
