"""What two executions left, compared: the verdict, and each kind of difference."""

from tests.unit.replay.record_builder import RecordBuilder, digest, read

from clew.prov.queries.execution_record import ExecutionRecord, Gap
from clew.replay.compare import output_comparison
from clew.replay.compare.output_comparison import Comparison, compare, diff_text
from clew.replay.compare.volatile_rules import BUILT_IN


def compared(a: ExecutionRecord, b: ExecutionRecord) -> Comparison:
    return compare(a, b, read, BUILT_IN)


def kinds(a: ExecutionRecord, b: ExecutionRecord) -> list[tuple[str, str]]:
    return [(one.path, one.kind) for one in compared(a, b).differences]


def leaving(number: int, *outputs: tuple[str, bytes | None], status: int = 0) -> ExecutionRecord:
    run = RecordBuilder("make", number=number)
    process = run.process("make")
    for path, content in outputs:
        run.writes(process, path, content)
    return run.record(status)


def test_the_same_outputs_are_identical() -> None:
    a, b = leaving(1, ("/w/x", b"1")), leaving(2, ("/w/x", b"1"))
    assert compared(a, b) == Comparison(())
    assert compared(a, b).verdict == "identical"


def test_devices_and_files_of_the_kernel_are_no_results() -> None:
    a = leaving(1, ("/w/x", b"1"), ("/dev/nvidia0", None), ("/proc/7/task/9/comm", None))
    b = leaving(2, ("/w/x", b"1"), ("/dev/nvidia0", None), ("/proc/4/task/5/comm", None))
    assert compared(a, b).verdict == "identical"


def test_other_content() -> None:
    a, b = leaving(1, ("/w/x", b"1\n")), leaving(2, ("/w/x", b"2\n"))
    (one,) = compared(a, b).differences
    assert (one.kind, one.a, one.b) == ("content", digest(b"1\n"), digest(b"2\n"))
    assert one.lines[2:] == ("@@ -1 +1 @@", "-1", "+2")
    assert compared(a, b).verdict == "different"


def test_missing_and_extra() -> None:
    a, b = leaving(1, ("/w/x", b"1"), ("/w/y", b"1")), leaving(2, ("/w/y", b"1"), ("/w/z", b"1"))
    assert kinds(a, b) == [("/w/x", "missing"), ("/w/z", "extra")]


def test_equivalent_is_never_identical() -> None:
    a, b = leaving(1, ("/w/x.log", b"09:05:33 ok")), leaving(2, ("/w/x.log", b"10:00:00 ok"))
    (one,) = compared(a, b).differences
    assert (one.kind, one.rule) == ("equivalent", "times")
    assert compared(a, b).verdict == "equivalent"
    assert compared(a, b).significant == []
    assert one.as_json()["rule"] == "times"


def test_one_real_difference_among_equivalent_ones() -> None:
    a = leaving(1, ("/w/x.log", b"09:05:33 ok"), ("/w/y", b"1"))
    b = leaving(2, ("/w/x.log", b"10:00:00 ok"), ("/w/y", b"2"))
    assert compared(a, b).verdict == "different"
    assert [one.path for one in compared(a, b).significant] == ["/w/y"]


def test_modes() -> None:
    runs = []
    for number, mode in ((1, 0o100644), (2, 0o100755)):
        run = RecordBuilder("make", number=number)
        run.writes(run.process("make"), "/w/x", b"1", mode=mode)
        runs.append(run.record())
    (one,) = compared(*runs).differences
    assert (one.kind, one.a, one.b) == ("mode", "0644", "0755")


def test_the_status() -> None:
    (one,) = compared(leaving(1), leaving(2, status=3)).differences
    assert (one.kind, one.a, one.b) == ("status", 0, 3)


def test_streams_are_outputs_and_come_first() -> None:
    runs = []
    for number, text in ((1, b"1"), (2, b"2")):
        run = RecordBuilder("make", number=number)
        process = run.process("make")
        run.writes(process, "/w/x", text)
        run.prints(text, process)
        run.prints(text, process, stream="stderr")
        runs.append(run.record())
    assert kinds(*runs) == [("stderr", "content"), ("stdout", "content"), ("/w/x", "content")]


def test_an_empty_stream_equals_a_missing_one() -> None:
    run = RecordBuilder("make", number=2)
    key = run.version("stdout", None)
    run.also_writes(run.process("make"), key)
    assert compared(leaving(1), run.record()).verdict == "identical"


def test_an_empty_stream_and_one_with_words() -> None:
    runs = []
    for number, text in ((1, None), (2, b"2")):
        run = RecordBuilder("make", number=number)
        run.also_writes(run.process("make"), run.version("stdout", text))
        runs.append(run.record())
    assert kinds(*runs) == [("stdout", "content")]
    assert kinds(*reversed(runs)) == [("stdout", "content")]


def test_unknown_content_is_never_identical() -> None:
    assert kinds(leaving(1, ("/w/x", None)), leaving(2, ("/w/x", None))) == [("/w/x", "unknown")]
    assert kinds(leaving(1, ("/w/x", b"1")), leaving(2, ("/w/x", None))) == [("/w/x", "unknown")]
    assert compared(leaving(1, ("/w/x", None)), leaving(2, ("/w/x", None))).verdict == "different"


def test_a_record_that_was_cut_short_is_never_identical() -> None:
    a, b = leaving(1), leaving(2)
    b.gaps.append(Gap(b.itself.key, "trace", "no room", None))
    assert kinds(a, b) == [("trace", "unknown")]


def test_what_was_there_and_is_removed_by_one_only() -> None:
    runs = []
    for number in (1, 2):
        run = RecordBuilder("make", number=number)
        process = run.process("make")
        found = run.reads(process, "/w/x", b"1")
        if number == 2:
            run.removes(process, found)
        runs.append(run.record())
    (one,) = compared(*runs).differences
    assert (one.kind, one.a, one.b) == ("removed", digest(b"1"), None)
    (one,) = compared(*reversed(runs)).differences
    assert (one.kind, one.a, one.b) == ("removed", None, digest(b"1"))


def test_a_transient_file_is_not_an_output() -> None:
    runs = []
    for number, text in ((1, b"1"), (2, b"2")):
        run = RecordBuilder("make", number=number)
        process = run.process("make")
        run.removes(process, run.writes(process, "/w/tmp", text))
        runs.append(run.record())
    assert compared(*runs).verdict == "identical"


def test_another_machine_and_another_directory() -> None:
    a = RecordBuilder("make", number=1, cwd="/home/ann/one")
    a.writes(a.process("make"), "/home/ann/one/out/x", b"1")
    b = RecordBuilder("make", number=2, cwd="/home/bob/two")
    b.writes(b.process("make"), "/home/bob/two/out/x", b"2")
    moved = b.record()
    for key, version in moved.versions.items():
        moved.versions[key] = version._replace(
            locator=version.locator.replace("file://machine", "file://elsewhere")
        )
    assert kinds(a.record(), moved) == [("/home/ann/one/out/x", "content")]


def test_a_directory_within_the_other_moves_nothing() -> None:
    a = RecordBuilder("make", number=1, cwd="/w")
    a.writes(a.process("make"), "/w/sub/x", b"1")
    b = RecordBuilder("make", number=2, cwd="/w/sub")
    b.writes(b.process("make"), "/w/sub/x", b"1")
    assert compared(a.record(), b.record()).verdict == "identical"


def test_large_files_are_not_read(monkeypatch: object) -> None:
    asked: list[str] = []

    def reading(name: str) -> bytes | None:
        asked.append(name)
        return read(name)

    a, b = leaving(1, ("/w/x.log", b"09:05:33")), leaving(2, ("/w/x.log", b"10:00:00"))
    for record in (a, b):
        for key, version in record.versions.items():
            record.versions[key] = version._replace(size=1 << 40)
    (one,) = compare(a, b, reading, BUILT_IN).differences
    assert (one.kind, asked) == ("content", [])


def test_bytes_that_are_not_stored() -> None:
    a, b = leaving(1, ("/w/x.log", b"09:05:33")), leaving(2, ("/w/x.log", b"10:00:00"))
    (one,) = compare(a, b, lambda _: None, BUILT_IN).differences
    assert one.kind == "content"
    assert not one.lines


def test_binary_files_have_no_line_differences() -> None:
    assert diff_text(b"\0a", b"\0b", "x") == ()
    assert diff_text(b"\xff", b"\xfe", "x") == ()
    assert diff_text(b"a" * (1 << 17), b"b", "x") == ()


def test_many_lines_are_cut() -> None:
    lines = [b"".join(b"%d %d\n" % (n, side) for n in range(300)) for side in (1, 2)]
    told = diff_text(*lines, "x")
    assert len(told) == output_comparison._MAX_DIFF_LINES + 1
    assert told[-1].endswith("more lines")
