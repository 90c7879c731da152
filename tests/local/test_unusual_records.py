"""Records made elsewhere that are well-formed and odd: no command fails on one with a traceback,
no answer of the server is a 500, and nothing of one reaches the terminal raw."""

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.driver import Project
from tests.local.server import run_server
from tests.local.test_cmd_pipeline import run as run_pipeline
from tests.local.test_pipeline_reuse import reused
from tests.unit.prov.execution_builder import ExecutionBuilder

from clew.cli.main import main
from clew.prov.event_validation import check_events
from clew.prov.events import AnyEvent, Content, Ended, Gap, Generated, Started, Used, Version
from clew.prov.export.recorded_events import export_events
from clew.prov.queries.executions import find_execution

__all__ = ["reused"]  # a fixture

ESCAPES = "\x1b[31mred\x1b]0;title\x07\r\n\u202e"
NOWHERE = "blake3:" + "0" * 64


def _empty() -> list[AnyEvent]:
    return ExecutionBuilder("1", command=()).end().events


def _many_words() -> list[AnyEvent]:
    builder = ExecutionBuilder("2", command=("x",) * 100_000)
    builder.process(*("y",) * 100_000)
    return builder.end().events


def _escapes() -> list[AnyEvent]:
    facets: dict[str, Any] = {
        "kind": ESCAPES, ESCAPES: ESCAPES, "git": {"commit": ESCAPES, "dirty": True},
        "os": {"pretty_name": ESCAPES}, "packages": {f"pkg:deb/x/{ESCAPES}": {"requested": True}},
        "user": {"name": ESCAPES}, "redacted": [ESCAPES], "timezone": ESCAPES, "machine": "m1",
        "cpu": {"architecture": ESCAPES},
    }  # fmt: skip
    names = dict.fromkeys(("name", "agent", "image", "node"), ESCAPES)
    variables = {ESCAPES: ESCAPES, "": "x"}
    builder = ExecutionBuilder(
        "3", command=("sh", ESCAPES), **names, environment=variables, facets=facets
    )
    process = builder.process("x", ESCAPES)
    package = f"pkg:deb/debian/{ESCAPES}@1"
    builder.read(process, f"/w/in{ESCAPES}", "A", package=package, source=f"https://{ESCAPES}")
    builder.write(process, f"/w/out{ESCAPES}", "B")
    builder.look(process, f"/w/{ESCAPES}", "odd", ESCAPES)
    builder.gap(process, ESCAPES, ESCAPES, f"/w/{ESCAPES}")
    for peer in (f"tcp://{ESCAPES}:\N{SUPERSCRIPT TWO}", f"https://a:{'9' * 5000}/"):
        builder.read(process, peer)
    return builder.end().events


def _late() -> list[AnyEvent]:
    """Far in the future, the last first; two processes of one number."""
    builder = ExecutionBuilder("4")
    for _ in range(2):
        builder.write(builder.process("a"), "/w/x", "A")
    return [
        msgspec.structs.replace(e, number=7, at=2**62 - 1 - e.n)
        if isinstance(e, Started)
        else msgspec.structs.replace(e, at=2**62 - 1 - e.n)
        for e in builder.end().events
    ]


def _ordinals() -> list[AnyEvent]:
    builder = ExecutionBuilder("5")
    process = builder.process("x")
    place = builder.write(process, "/w/x", "A").locator
    about: dict[str, Any] = {"execution": builder.uid, "at": 5}
    first, last = Version(place, process, 0), Version(place, process, 2**63 - 1)
    builder.events += [
        Used(**about, n=90, activity=process, version=first),
        Content(
            **about, n=91, version=first, digest=NOWHERE, size=2**63 - 1, mode=0o177777,
            mtime=1 - 2**63,
        ),
        Generated(**about, n=92, activity=process, version=last),
    ]  # fmt: skip
    return builder.end(status=-5, signal=2**31 - 1).events


def _parts() -> list[AnyEvent]:
    """Executions of which only a part was sent."""
    ended, process, gap = ("6" * 32, "7" * 32, "8" * 32)
    facets = {"inherits": ended, "processes": 2**62, "bytes": 2**63 - 1}
    begun = {"begun": {"at": 0, "held": []}}
    return [
        Ended(execution=ended, n=1, at=1, activity=ended, status=0, facets=facets),
        Started(
            execution=process, n=1, at=1, activity="x-1-0-" + "9" * 900, kind="process", number=1,
            pid=2**62, exe="/", cwd="/", facets=begun,
        ),
        Gap(execution=gap, n=0, at=0, activity=gap, what="x", why="y"),
    ]  # fmt: skip


def _references() -> list[AnyEvent]:
    """Executions that refer to themselves, and to none that is here."""
    itself = ExecutionBuilder("9", facets={"inherits": "9" * 32, "collection": "9" * 32})
    other = {"inherits": "b" * 32, "collection": "c" * 32, "kind": "modification"}
    return itself.end().events + ExecutionBuilder("a", parent="b" * 32, facets=other).end().events


def _facets() -> list[AnyEvent]:
    facets: dict[str, Any] = {
        "streams": {
            "stdin": {"kind": "file", "path": "/etc/../x"}, "stdout": {"kind": "terminal"},
            "other": {"kind": "file", "path": "/", "begin": 5},
        },
        "argument_secrets": {"999": ["A"], "0": [None]}, "redacted": [""],
        "variables_b64": {"": "/w==", "A": ""}, "umask": "7777", "limits": {"nofile": [-1, 5]},
        "pinned": {"clock": 0}, "machine": "m1",
    }  # fmt: skip
    builder = ExecutionBuilder("b", facets=facets)
    begun = {
        "at": 9, "held": [[0, 0, ""], [2, 2, "/w", -5, 0, -7]],
        "output": {"stdout": [5, 0], "places": {"9": -3}},
    }  # fmt: skip
    process = builder.process("sh", facets={"begun": begun, "reused_from": "x"})
    builder.process("b", parent="nobody")
    builder.write(process, "/w/x", "A")
    return builder.end().events


def _paths() -> list[AnyEvent]:
    builder = ExecutionBuilder("c")
    process = builder.process("x")
    builder.read(process, "/", "A")
    for path in ("/", "/w/..x", "/w" + "/d" * 5000, "/w/" + "n" * 5000):
        builder.write(process, path, "B")
    return builder.end().events


def _deep() -> list[AnyEvent]:
    builder = ExecutionBuilder("d")
    process = builder.uid
    for _ in range(3000):
        process = builder.process("x", parent=process)
    builder.write(process, "/w/x", "A")
    return builder.end().events


def _looks() -> list[AnyEvent]:
    builder = ExecutionBuilder("f", command=("sh", "-c", "true"), facets={"machine": "m1"})
    process = builder.process("sh", facets={"begun": {"at": 3, "held": []}})
    for number, (kind, answer) in enumerate(
        [
            ("present", "177777"), ("times", "40755 -9 -9999999999999999999"), ("link", ESCAPES),
            ("link", "/" * 9000), ("listing", NOWHERE), ("removed", "0 1"),
            ("made", "40755 9999999999999999999 9999999999999999999"),
        ]
    ):  # fmt: skip
        builder.look(process, f"/w/{number}", kind, answer)
    return builder.end().events


def _cycles() -> list[AnyEvent]:
    builder = ExecutionBuilder("e")
    one, other = builder.process("x"), builder.process("y")
    for pair in ((one, other), (other, one), (one, one)):
        builder.inform(*pair)
    builder.read(one, "/w/a", "A")
    builder.write(one, "/w/a", "B")
    builder.write(other, "/w/a", "A")
    for a, b in (("/w/a", "/w/a"), ("/w/a", "/w/b"), ("/w/b", "/w/a")):
        builder.alias(a, b)
    return builder.end().events


STORIES = (
    _empty, _many_words, _escapes, _late, _ordinals, _parts, _references, _facets, _paths, _deep,
    _looks, _cycles,
)  # fmt: skip


def import_all(clew: Project) -> list[str]:
    with clew.opened() as opened:
        graph = opened.graph
        uids = {}
        for builder in STORIES:
            events = [
                msgspec.structs.replace(event, stored=False)
                if isinstance(event, Content)
                else event
                for event in builder()
            ]
            graph.import_events(events)
            uids |= dict.fromkeys(event.execution for event in events)
        return [find_execution(graph, uid).id for uid in uids]


def test_records_of_our_own_recorders_are_well_formed(tmp_path: Path, reused: Path) -> None:
    """Of a command, pinned or not, a repeat, the tasks of a pipeline and their worker."""
    clew = Project(tmp_path)
    line = "date | sort > out; ls /nowhere/../x; mkdir d; printf x > $(printf 'd/a\\377%%'); true"
    clew.shell(line, "--pin", "clock,random")
    clew("repeat", "e1")
    (clew.folder / "folder").mkdir()
    clew.write("undeclared.txt", "words")
    clew.write("helping.py", "WORD = 'help'\n")
    run_pipeline(clew, reused)
    with clew.opened() as opened:
        executions = opened.executions()
        assert len(executions) > 3
        known: set[str] = set()
        for execution in executions:
            events = export_events(opened.graph, find_execution(opened.graph, execution.id))
            check_events(execution.uid, events)
            known.update(*(getattr(event, "facets", {}) for event in events))
        assert known >= {"begun", "inherits", "pinned", "streams", "network", "packages"}


def test_every_command_takes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    clew = Project(tmp_path)
    clew.shell("echo good > f")
    imported = import_all(clew)
    for name, value in clew.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(clew.folder)
    places = (str(tmp_path / f"place{n}") for n in itertools.count())

    def run(*words: str) -> None:
        assert main(words) in (0, 1, 2, 3, 4, 5, 125, 126, 127), words
        said = "".join(capfd.readouterr())
        assert "Traceback" not in said, (words, said[-2000:])
        raw = {char for char in said if not char.isprintable()} - {"\n", "\t"}
        assert not raw, (words, raw)

    formats = ("prov-json", "prov-n", "ro-crate", "oci", "dockerfile", "runner")
    for words in (("list",), ("list", "--tree"), ("fsck",)):
        run(*words)
    for one in imported:
        run("show", one)
        run("show", one, "--detail")
        run("show", one, "--readme")
        run("trace", one)
        run("trace", f"{one}:/w/x")
        run("diff", "e1", one)
        for form in formats:
            run("export", one, "--format", form, "-o", next(places))
        run("checkout", one, next(places))
        run("restore", f"{one}:/w/x", "--to", next(places))
        run("repeat", one)
    for one in imported:
        run("rm", one, "--yes")
    run("fsck")


def test_every_answer_of_the_server_takes_them(tmp_path: Path) -> None:
    clew = Project(tmp_path)
    clew.shell("echo good > f")
    imported = import_all(clew)
    with run_server(clew) as server, server.client() as client:
        addresses = ["executions", "search?q=red", "versions?path=/w/x"]
        for one in imported:
            addresses += [
                f"executions/{one}{rest}"
                for rest in (
                    "", "/processes", "/files", "/prov", "/events", "/reports/readme",
                    "/reports/requirements", "/reports/packages",
                )
            ]  # fmt: skip
            addresses += [f"lineage?target={one}", f"lineage?target={one}&direction=down"]
            addresses += [f"diff?a=e1&b={one}", f"lineage/between?a=e1&b={one}"]
            addresses += [f"notes?target={one}", f"versions/{one}:/w/x/preview"]
        for address in addresses:
            answer = client.get(f"/api/v1/{address}")
            assert answer.status_code < 500, (address, answer.text[:500])
