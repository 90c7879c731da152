"""Imported records whose values are malformed are rejected, and the error names the value."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.prov.execution_builder import MACHINE, ExecutionBuilder, digest

from clew.errors import Rejected
from clew.prov.event_validation import check_events
from clew.prov.events import (
    AnyEvent,
    Content,
    Ended,
    Looked,
    Started,
    Version,
    from_batch,
    to_batch,
)
from clew.prov.facets import MAX_DEPTH, MAX_TEXT, Facets
from clew.prov.graph import Graph
from clew.redaction import Redactor
from clew.witness import environment
from clew.witness.accelerators import find_accelerators

UID = "a" * 32
GOOD: dict[str, Any] = {
    "argument_secrets": {"2": ["TOKEN", None]},
    "begun": {
        "at": 5,
        "held": [[0, 1, "/dev/null"], [1, 2, "/w/out", 0, 1, 10]],
        "program": "/w/run.sh",
        "standing": "limits",
        "sealed": {"TOKEN": "ab"},
        "output": {"stdout": [0, 5], "stderr": None, "places": {"3": -1}},
    },
    "boot": "4f3c",
    "bytes": 1,
    "collection": UID,
    "cpu": {"architecture": "x86_64", "flags": ["sse"], "count": 2, "usable": 2},
    "cuda": "12.4",
    "cudnn": "9.1.0",
    "cwd": "/w",
    "driver": {"nvidia": "550.54"},
    "git": {"commit": None, "dirty": True},
    "gpu": [{"vendor": "NVIDIA", "model": "H200", "bus": "0000:01:00.0", "uuid": "GPU-1"}],
    "hostname": "node-1.example.org",
    "inherits": UID,
    "inputs": 1,
    "kernel": {"name": "Linux", "release": "6.1"},
    "kind": "repetition",
    "libc": "glibc 2.36",
    "limits": {"nofile": [1024, None]},
    "locale": {"LANG": "C"},
    "machine": "0" * 32,
    "masked": ["stdout"],
    "memory": {"total": 1 << 40},
    "network": False,
    "new_bytes": 1,
    "os": {"id": "debian"},
    "outputs": 1,
    "packages": {"pkg:deb/debian/x@1": {"requested": None}},
    "pinned": {"clock": 5, "random": "0f" * 16, "serial": True},
    "processes": 1,
    "redacted": ["TOKEN"],
    "reused_from": None,
    "sealed": {"TOKEN": "ab"},
    "streams": {
        "stdin": {"kind": "file", "path": "/w/in", "begin": 0},
        "stderr": {"kind": "stdout"},
    },
    "timezone": "Europe/Berlin",
    "typed": 3,
    "umask": "0022",
    "user": {"name": "ann", "uid": 1000, "gid": 1000, "groups": [1000]},
    "variables_b64": {"A": "/w=="},
}
WRONG: tuple[Any, ...] = ([[]], {"x": [[]]}, 1.5, -1, 2**63, "-\n\x00", [None, {}], {"1": {"2": 3}})
MORE: tuple[tuple[str, Any], ...] = (
    ("argument_secrets", {"x": ["A"]}),
    ("argument_secrets", {"1": "A"}),
    ("begun", {}),
    ("begun", {**GOOD["begun"], "held": [[0, 1, "x", 5]]}),
    ("begun", {**GOOD["begun"], "output": {"places": {"²": 1}}}),
    ("collection", "e1"),
    ("hostname", "--dev-bind"),
    ("hostname", "a/b"),
    ("inherits", "e1"),
    ("limits", {"nofile": [1]}),
    ("machine", "a/../b"),
    ("pinned", {"clock": 2**62}),
    ("pinned", {"random": "; reboot"}),
    ("streams", {"stdin": {"kind": "file"}}),
    ("streams", {"stdin": {"kind": "file", "path": "etc"}}),
    ("streams", {"stdin": []}),
    ("umask", "0o22"),
    ("umask", "9"),
    ("user", {"uid": 2**32 - 1}),
    ("user", {"uid": -1}),
    ("user", {"uid": True}),
    ("variables_b64", {"A": "%"}),
    ("variables_b64", {"A": "AAAA"}),  # zero bytes
    ("variables_b64", {"A=B": "/w=="}),
)


def record(**facets: Any) -> list[AnyEvent]:
    return ExecutionBuilder("a", facets=facets).end().events


def started(**fields: Any) -> AnyEvent:
    return msgspec.structs.replace(record()[0], **fields)


def test_the_known_facets_import(graph: Graph) -> None:
    assert GOOD.keys() == Facets.__annotations__.keys()
    graph.import_events(record(**GOOD))


@pytest.mark.parametrize("name", GOOD)
def test_a_facet_of_another_type_is_rejected_and_named(name: str) -> None:
    rejected = 0
    for wrong in WRONG:
        for events in (record(**{name: wrong}), ExecutionBuilder("a").end(**{name: wrong}).events):
            try:
                check_events(UID, events)
            except Rejected as error:
                assert f"facets.{name}" in error.message, error.message
                rejected += 1
    assert rejected >= 2 * (len(WRONG) - 2)  # a map may have more keys than are known


@pytest.mark.parametrize(("name", "wrong"), MORE)
def test_a_value_out_of_its_range_is_rejected_and_named(name: str, wrong: Any) -> None:
    with pytest.raises(Rejected, match=f"facets.{name}"):
        check_events(UID, record(**{name: wrong}))


def test_nothing_of_a_malformed_record_is_imported(graph: Graph) -> None:
    with pytest.raises(Rejected, match=r"facets\.streams"):
        graph.import_events(ExecutionBuilder("b").end().events, record(streams=[]))
    assert graph.connection.rows("SELECT 1 FROM execution") == []


def test_unknown_facets_are_kept_within_bounds(graph: Graph) -> None:
    graph.import_events(record(future={"a": [1, None, 2.5, {"b": "c"}]}))
    deep: Any = 1
    for _ in range(MAX_DEPTH):
        deep = [deep]
    for wrong in (
        deep, "x" * (MAX_TEXT + 1), [0] * 100_001, 2**64, float("nan"), b"x", {1: 2}, "\0",
        msgspec.msgpack.Ext(5, b"x"),
        {"x" * (MAX_TEXT + 1): 1},
    ):  # fmt: skip
        with pytest.raises(Rejected, match=r"facets\.future"):
            check_events(UID, record(future=wrong))


OUT = Version(f"file://{MACHINE}/w/out", UID, 1)


def content(**fields: Any) -> AnyEvent:
    good: dict[str, Any] = {
        "version": OUT, "digest": digest("x"), "size": 1, "mode": 0o100644, "mtime": 1
    }  # fmt: skip
    return Content(execution=UID, n=3, at=3, **{**good, **fields})


def looked(locator: str) -> AnyEvent:
    return Looked(execution=UID, n=3, at=3, activity=UID, kind="absent", locator=locator)


def also(kind: str, locator: str) -> AnyEvent:
    return msgspec.structs.replace(looked(OUT.locator), also=((kind, locator, ""),))


def ended(**fields: Any) -> AnyEvent:
    return Ended(execution=UID, n=3, at=3, activity=UID, **fields)


@pytest.mark.parametrize(
    ("field", "event"),
    [
        ("cwd", started(cwd="w")),
        ("cwd", started(cwd="/w\0")),
        ("exe", started(exe="--help")),
        ("at", started(at=-1)),
        ("at", started(at=2**62)),
        ("n", started(n=2**63)),
        ("number", started(number=-1)),
        ("kind", started(kind="a b")),
        ("activity", started(activity="\x1b[2J")),
        ("parent", started(parent="x\n")),
        ("name", started(name="x" * 2000)),
        ("command", started(command=("x\0",))),
        ("environment", started(environment={"A=B": "C"})),
        ("environment", started(environment={"A": "\0"})),
        ("size", content(size=-1)),
        ("size", content(size=2**63)),
        ("mode", content(mode=0o200000)),
        ("mode", content(mode=-1)),
        ("mtime", content(mtime=2**63)),
        ("digest", content(digest="blake3:../../x")),
        ("ordinal", content(version=Version(OUT.locator, UID, -1))),
        ("status", ended(status=2**31)),
        ("signal", ended(signal=-1)),
        ("usage", ended(usage={"user_seconds": float("inf")})),
        *(
            ("answer", msgspec.structs.replace(looked(OUT.locator), kind=kind, answer=answer))
            for kind, answer in (
                ("present", "9"), ("present", "\x1b[2J"), ("times", "644"), ("times", "9 1 1"),
                ("times", "644 1 " + "9" * 5000), ("listing", "names"), ("link", "%zz"),
                ("made", ""), ("removed", "9 9"), ("absent", "\n"),
            )
        ),
        ("also", also("listing", OUT.locator)),
        ("locator", also("absent", "/w/x")),
        *(
            ("locator", looked(locator))
            for locator in (
                "", "/w/x", "file:/w", "file://", "file://m", "file://m\n/x", "file://a b/x",
                "file://m/%00", "file://m/%41", "file://m/%", "file://m/%ff", "stream://x/stdout",
                f"stream://{UID}/../x", "file://m/" + "x" * (1 << 14), "file://m/\0",
            )
        ),
        *(
            ("locator", content(version=Version(locator, UID, 1)))
            for locator in (
                "file://m/dev/../home/x", "file://m/..", "file://m/a/./x", "file://m/a//x",
                "file://m//x", "file://m/a/",
            )
        ),
    ],
)  # fmt: skip
def test_a_malformed_field_is_rejected_and_named(field: str, event: AnyEvent) -> None:
    with pytest.raises(Rejected, match=f"malformed: {field}: "):
        check_events(UID, [event])


@pytest.mark.parametrize(
    "locator",
    ["file:///x", "file://m/a%25b%FF", f"stream://{UID}/stdin", "tcp://[::1]:80", "unix:@x"],
)
def test_locators_of_our_recorders_are_well_formed(locator: str) -> None:
    check_events(UID, [looked(locator)])


def test_what_was_looked_for_need_not_be_normalised() -> None:
    check_events(UID, [looked("file://m/missing/../x"), content(version=OUT)])
    with pytest.raises(Rejected, match="not normalised"):
        locator = "file://m/missing/../x"
        check_events(UID, [looked(locator), content(version=Version(locator, UID, 1))])


def process(uid: str, parent: str, n: int = 5) -> AnyEvent:
    return Started(execution=UID, n=n, at=n, activity=uid, kind="process", parent=parent)


@pytest.mark.parametrize(
    "parts",
    [
        [[process("p", "p")]],
        [[process("p", "p"), process("p", UID, 6)]],  # the first one counts
        [[process("p", "q"), process("q", "r", 6), process("r", "p", 7)]],
        [[process("p", "q")], [process("q", "p", 6)]],  # the second completes it
        [[started(parent=UID)]],
        [[started(parent="b" * 32)], [msgspec.structs.replace(
            started(), execution="b" * 32, activity="b" * 32, parent=UID)]],
    ],
)  # fmt: skip
def test_a_process_that_descends_from_itself_is_rejected(
    graph: Graph, parts: list[list[AnyEvent]]
) -> None:
    for part in parts[:-1]:
        graph.import_events(part)
    with pytest.raises(Rejected, match="its own ancestor"):
        graph.import_events(parts[-1])


def test_text_that_is_not_utf8_is_rejected() -> None:
    batch = to_batch([started(name="XYZZY")]).replace(b"XYZZY", b"XY\xffZY")
    with pytest.raises(msgspec.DecodeError, match="UTF-8"):
        from_batch(batch)


def test_the_environment_of_this_machine_and_of_one_with_a_gpu_imports(tmp_path: Path) -> None:
    gpu = tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0/information"
    gpu.parent.mkdir(parents=True)
    gpu.write_text("Model: \t NVIDIA H200\nGPU UUID: \t GPU-1\n")
    facets = environment.facets(Path.cwd(), {"A": "\udcff", "LANG": "C"}, Redactor({}))
    facets.pop("variables")
    facets |= find_accelerators(tmp_path, {})
    assert facets["gpu"]
    assert facets["variables_b64"]
    check_events(UID, record(**facets))
