"""What a repeat would do, and what is said before it starts."""

import os
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.replay.record_builder import RecordBuilder, digest

from clew.errors import ClewError, NoContent, SecretsNeeded, UsageError
from clew.prov.locators import file_locator
from clew.prov.queries.execution_record import Edge, ExecutionRecord, Gap
from clew.replay.repeat.repeat_plan import RepeatPlan, make_plan, replace_words, resolve_word
from clew.replay.repeat.secret_values import SecretValues


def made(run: RecordBuilder, *, network: bool = False, **environ: str) -> RepeatPlan:
    return make_plan(
        run.record(), read_listing=lambda _: [], values=SecretValues(environ), network=network
    )


def test_the_command_finds_what_it_had() -> None:
    run = RecordBuilder(
        "sh", "-c", "x", variables={"LANG": "C"}, facets={"machine": "m", "umask": "0077"}
    )
    found = made(run, LANG="de_DE", OTHER="not its business")
    assert (found.command, found.environ, found.cwd) == (("sh", "-c", "x"), {"LANG": "C"}, "/w")
    assert (found.machine, found.warnings, found.devices, found.stdin) == ("m", (), (), None)


def test_secrets_come_from_the_caller() -> None:
    facets: dict[str, Any] = {"redacted": ["TOKEN"], "argument_secrets": {"2": ["TOKEN"]}}
    run = RecordBuilder("curl", "-H", "X: ***", variables={"TOKEN": "***", "A": "1"}, facets=facets)
    found = made(run, TOKEN="real")
    assert found.environ == {"TOKEN": "real", "A": "1"}
    assert found.command == ("curl", "-H", "X: real")
    with pytest.raises(UsageError, match="TOKEN") as told:
        made(run)
    assert "--secret TOKEN" in told.value.hint


def test_a_record_made_elsewhere_gets_only_what_was_given() -> None:
    run = RecordBuilder("x", variables={"TOKEN": "***"}, facets={"redacted": ["TOKEN"]})
    record = run.record()
    record = replace(record, execution=record.execution._replace(made_elsewhere=True))

    def planned(values: SecretValues) -> RepeatPlan:
        return make_plan(record, read_listing=lambda _: [], values=values, network=False)

    with pytest.raises(SecretsNeeded, match="made elsewhere") as refused:
        planned(SecretValues(environ={"TOKEN": "mine"}))
    assert refused.value.names == ("TOKEN",)
    found = planned(SecretValues(environ={"TOKEN": "mine"}, given={"TOKEN": "given"}))
    assert (found.environ, found.secrets) == ({"TOKEN": "given"}, {"TOKEN": "given"})
    assert "made elsewhere" in found.warnings[0]
    mistyped = planned(SecretValues(given={"TOKEN": "given", "TOKN": "given"}))
    assert "the record does not need the secret TOKN" in mistyped.warnings


def test_a_name_of_a_secret_is_quoted_in_the_hint() -> None:
    """A hint is pasted into a shell, and a stranger's record names its secrets as it likes."""
    run = RecordBuilder("x", variables={"A;touch x": "***"}, facets={"redacted": ["A;touch x"]})
    with pytest.raises(SecretsNeeded) as refused:
        made(run)
    assert refused.value.hint.endswith("--secret 'A;touch x'")


def test_stars_that_hid_nothing_are_stars() -> None:
    assert made(RecordBuilder("echo", "***")).command == ("echo", "***")


def test_each_secret_stands_where_it_stood() -> None:
    facets: dict[str, Any] = {
        "redacted": ["A", "B", "PASSWORD"],
        "argument_secrets": {"1": ["B", None, "A"], "3": ["PASSWORD"]},
    }
    words = ("x", "***:***:***", "--password", "***", "***")
    run = RecordBuilder(*words, variables={"A": "***", "B": "***"}, facets=facets)
    found = made(run, A="1", B="2", PASSWORD="3")
    assert found.command == ("x", "2:***:1", "--password", "3", "***")
    assert found.environ == {"A": "1", "B": "2"}
    with pytest.raises(UsageError, match="PASSWORD") as told:
        made(run, A="1", B="2")
    assert "--secret PASSWORD" in told.value.hint


def test_which_secret_stood_there_is_not_guessed() -> None:
    facets: dict[str, Any] = {"redacted": ["A"], "argument_secrets": {"1": ["A"]}}
    run = RecordBuilder("x", "***:***", variables={"A": "***"}, facets=facets)
    with pytest.raises(UsageError, match="word 1") as told:
        made(run, A="1")
    assert "--set 1=" in told.value.hint


def _without_end(record: ExecutionRecord) -> ExecutionRecord:
    itself = record.itself._replace(ended=None)
    return replace(record, activities={**record.activities, itself.key: itself})


def test_what_cannot_be_repeated() -> None:
    run = RecordBuilder("sh")
    with pytest.raises(ClewError, match="is incomplete: it cannot be repeated"):
        make_plan(
            _without_end(run.record()),
            read_listing=lambda _: [],
            values=SecretValues(),
            network=False,
        )
    for name in "abcd":
        run.reads(run.process("sh"), f"/w/{name}", None)
    with pytest.raises(NoContent, match="/w/a, /w/b, /w/c and 1 more"):
        made(run)


def test_what_cannot_be_as_it_was_is_said() -> None:
    run = RecordBuilder("sh", facets={"typed": 3})
    p = run.process("sh")
    for path in ("/dev/nvidia0", "/dev/null", "/dev/urandom", "/sys/devices/system/cpu/online"):
        run.reads(p, path, None)
    some = run.reads(p, "/x")
    record = run.record()
    for number, peer in enumerate(("tcp://192.0.2.1:443", "tcp://127.0.0.1:99")):
        record.versions[-number] = record.versions[some]._replace(locator=peer)
        record.used.append(Edge(p, -number, 0, "connect"))
    record.gaps.append(Gap(p, "set-uid", "", None))
    found = make_plan(record, read_listing=lambda _: [], values=SecretValues(), network=False)
    assert found.devices == ("/sys/devices/system",)
    said = " / ".join(found.warnings)
    for word in ("192.0.2.1:443", "--network", "/dev/nvidia0", "--gpu", "typed", "privilege"):
        assert word in said
    assert "127.0.0.1" not in said
    allowed = make_plan(record, read_listing=lambda _: [], values=SecretValues(), network=True)
    assert "may have changed" in " / ".join(allowed.warnings)


def test_only_gpus_and_a_part_of_sys_are_ever_bound() -> None:
    run = RecordBuilder("sh")
    p = run.process("sh")
    some = run.reads(p, "/x")
    record = run.record()
    used = (
        *("/dev/../home/x", "/dev/nvidia0/../../home/x", "/dev//sda", "/dev/dri/../mem", "/dev"),
        *("/dev/nullx", "/dev/null", "/dev/shm/x", "/dev/nvidia0x", "/dev/fuse", "/sys/../home"),
        *(
            "/sys/firmware/efi",
            "/sys/devices/system/../../../etc",
            "/sys/kernel/mm/x",
            "/dev/./sdb",
        ),
    )
    for number, path in enumerate(used):
        locator = file_locator("m", os.fsencode(path))
        record.versions[-number] = record.versions[some]._replace(locator=locator)
        record.used.append(Edge(p, -number, 0, "read"))
    found = make_plan(
        record, read_listing=lambda _: [], values=SecretValues(), network=False, gpu=True
    )
    assert found.devices == ("/sys/kernel/mm",)
    [warning] = found.warnings
    assert "/dev/fuse and 6 more" in warning
    gpus = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dri/renderD128", "/dev/kfd")
    for number, path in enumerate(gpus):
        locator = file_locator("m", os.fsencode(path))
        record.versions[-number] = record.versions[some]._replace(locator=locator)
    refused = make_plan(record, read_listing=lambda _: [], values=SecretValues(), network=False)
    assert refused.devices == ("/sys/kernel/mm",)
    given = make_plan(
        record, read_listing=lambda _: [], values=SecretValues(), network=False, gpu=True
    )
    assert given.devices == (*sorted(gpus), "/sys")
    assert "the GPU of this machine (/dev/dri/renderD128 and 4 more)" in given.warnings[0]


def test_input_that_was_kept() -> None:
    run = RecordBuilder("cat")
    run.reads(run.process("cat"), "stdin", b"typed")
    assert made(run).stdin == digest(b"typed")


def test_words_are_counted_from_the_program() -> None:
    assert replace_words(["a", "b", "c"], {0: "x", 2: "z"}) == ("x", "b", "z")
    with pytest.raises(UsageError, match="no word 3"):
        replace_words(["a", "b", "c"], {3: "x"})


def test_where_a_word_leads() -> None:
    assert resolve_word("data/x", "/home/a") == b"/home/a/data/x"
    assert resolve_word("../x", "/home/a") == b"/home/x"
    assert resolve_word("/abs", "/home/a") == b"/abs"


def test_a_task_that_ran_as_a_pod_is_refused() -> None:
    run = RecordBuilder("python3", "main", facets={"task_pod": {"pod": "clew-train"}})
    with pytest.raises(ClewError, match="ran as a Pod: it cannot be repeated here"):
        made(run)
