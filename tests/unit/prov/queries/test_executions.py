"""The list of executions and one execution in full, in the contract's words."""

import json
from typing import Any

import pytest
from tests.unit.prov.execution_builder import ExecutionBuilder, digest, locator

from clew.documents.document import encode
from clew.prov.events import Ended
from clew.prov.graph import Graph
from clew.prov.queries.executions import get_execution, list_executions
from clew.prov.queries.files import list_versions
from clew.prov.queries.show import show_execution

EXECUTION = {
    "id", "uid", "name", "command", "cwd", "agent", "started", "ended", "seconds", "state",
    "status", "signal", "kind", "parent", "collection", "made_elsewhere", "signed_by",
    "processes", "inputs", "outputs", "bytes", "new_bytes", "task", "worker", "tags",
}  # fmt: skip


def never(_: str) -> bool:
    return False


def show(graph: Graph, **options: bool) -> Any:
    return json.loads(encode(show_execution(graph, "e1", alive=never, **options)))


def test_an_execution_that_is_done(graph: Graph) -> None:
    second = 1_000_000_000
    builder = ExecutionBuilder(
        "a", at=1_700_000_000 * second, command=("make", "all"), agent="ann", name="n"
    )
    builder.end(0, processes=3, inputs=10, outputs=2, bytes=5, new_bytes=4)
    graph.fold(builder.events)
    [found] = list_executions(graph, alive=never)
    document = json.loads(encode(found))
    assert document.keys() == EXECUTION
    assert document == document | {
        "id": "e1", "uid": "a" * 32, "name": "n", "command": ["make", "all"], "cwd": "/w",
        "agent": "ann", "started": "2023-11-14T22:13:20Z", "state": "done", "status": 0,
        "signal": None, "kind": "reference", "parent": None, "collection": "e1",
        "made_elsewhere": False, "processes": 3, "inputs": 10, "outputs": 2,
        "bytes": 5, "new_bytes": 4,
    }  # fmt: skip
    for text in ("e1", "n", "a" * 32):
        assert get_execution(graph, text, alive=never) == found


@pytest.mark.parametrize(
    ("status", "signal", "state"), [(0, None, "done"), (2, None, "failed"), (None, 9, "failed")]
)
def test_how_it_ended(graph: Graph, status: int | None, signal: int | None, state: str) -> None:
    graph.fold(ExecutionBuilder("a").end(status, signal=signal).events)
    [found] = list_executions(graph, alive=lambda _: True)
    assert (found.state, found.status, found.signal) == (state, status, signal)


def test_one_that_never_ended_is_running_while_its_lock_is_held_and_counted(graph: Graph) -> None:
    builder = ExecutionBuilder("a")
    process = builder.process("x")
    builder.read(process, "/w/in", "in")
    builder.write(process, "/w/out", "four")
    builder.write(process, "/w/gone", "!")
    builder.delete(process, "/w/gone")
    graph.fold(builder.events)
    [found] = list_executions(graph, alive=lambda uid: uid == "a" * 32)
    assert (found.state, found.ended, found.seconds) == ("running", None, None)
    [found] = list_executions(graph, alive=never)
    assert found.state == "broken"
    counted = [
        found.as_json()[name] for name in ("processes", "inputs", "outputs", "bytes", "new_bytes")
    ]
    assert counted == [1, 1, 1, 7, None]


def test_one_that_only_began_is_listed(graph: Graph) -> None:
    graph.begin("a" * 32, name="n")
    [found] = list_executions(graph, alive=never)
    assert (found.id, found.state, found.command) == ("e1", "broken", ())
    assert found.started is not None


def test_families(graph: Graph) -> None:
    graph.fold(ExecutionBuilder("a").end().events)
    graph.fold(ExecutionBuilder("b", parent="a" * 32, facets={"kind": "repetition"}).end().events)
    graph.fold(ExecutionBuilder("c", parent="b" * 32, facets={"kind": "modification"}).end().events)
    graph.fold(ExecutionBuilder("d", facets={"collection": "b" * 32}).end().events)
    graph.fold(ExecutionBuilder("e", facets={"collection": "elsewhere"}).end().events)
    found = [(e.id, e.kind, e.parent, e.collection) for e in list_executions(graph, alive=never)]
    assert found == [
        ("e1", "reference", None, "e1"),
        ("e2", "repetition", "e1", "e1"),
        ("e3", "modification", "e2", "e1"),
        ("e4", "reference", None, "e2"),
        ("e5", "reference", None, "elsewhere"),
    ]


def test_a_second_ended_adds_to_the_first(graph: Graph) -> None:
    builder = ExecutionBuilder("a").end(0, processes=1, git={"commit": "c", "dirty": False})
    later = Ended(
        execution=builder.uid, n=99, at=9000, activity=builder.uid, facets={"new_bytes": 7}
    )
    graph.fold([later, *builder.events])
    found = show(graph)
    assert (found["status"], found["processes"], found["new_bytes"]) == (0, 1, 7)
    assert found["git"] == {"commit": "c", "dirty": False}


def test_show(graph: Graph) -> None:
    builder = ExecutionBuilder(
        "a",
        environment={"HOME": "/h"},
        facets={"cpu": "fast", "git": {"commit": "c", "dirty": True}},
    )
    outer = builder.process("sh")
    inner = builder.process("cat", "x", parent=outer)
    builder.end(1, activity=inner)
    builder.gap(inner, "mmap", "written through a mapping", "/w/m")
    builder.gap(builder.uid, "network", "not followed")
    graph.fold(builder.end().events)
    found = show(graph)
    assert [(p["id"], p["parent"], p["pid"], p["command"], p["status"]) for p in found["tree"]] == [
        ("e1.p1", None, 101, ["sh"], None),
        ("e1.p2", "e1.p1", 102, ["cat", "x"], 1),
    ]
    assert found["tree"][0].keys() >= {"exe", "cwd", "started", "ended"}
    assert found["environment"] == {
        "cpu": "fast",
        "variables": {"HOME": "/h"},
        "devices": [],
    }
    assert found["git"] == {"commit": "c", "dirty": True}
    assert [(g["what"], g["why"], g["path"], g["by"]) for g in found["gaps"]] == [
        ("mmap", "written through a mapping", "/w/m", "e1.p2"),
        ("network", "not followed", None, None),
    ]
    assert "files" not in found


def detail(graph: Graph, builder: ExecutionBuilder) -> dict[str, Any]:
    graph.fold(builder.events)
    found = show(graph, detail=True)
    return {file["path"]: file for file in found["files"]} | {"network": found["network"]}


def test_roles(graph: Graph) -> None:
    builder = ExecutionBuilder("a")
    p = builder.process("x")
    builder.read(p, "/w/in", "in")
    builder.write(p, "/w/out", "out")
    builder.read(p, "/w/both", "old")
    builder.write(p, "/w/both", "new")
    builder.write(p, "/w/temporary", "t")
    builder.delete(p, "/w/temporary")
    builder.read(p, "/w/eaten", "e")
    builder.delete(p, "/w/eaten")
    builder.write(p, "/w/saved.tmp", "s")
    builder.read(p, "/w/saved", "before")
    builder.delete(p, "/w/saved", how="replace")
    builder.rename(p, "/w/saved.tmp", "/w/saved", "s")
    builder.read(p, "/w/log", "l", how="append")
    builder.write(p, "/w/log", "ll")
    builder.read(p, "/w/name1", "h", how="link")
    builder.write(p, "/w/name2", "h", how="link")
    builder.write(p, f"stream://{builder.uid}/stdout", "hello")
    files = detail(graph, builder)
    roles = {
        path: (file["role"], file["read"], file["written"], file["digest"])
        for path, file in files.items()
        if path != "network"
    }
    assert roles == {
        "/w/in": ("input", True, False, digest("in")),
        "/w/out": ("output", False, True, digest("out")),
        "/w/both": ("output", True, True, digest("new")),
        "/w/temporary": ("transient", False, True, digest("t")),
        "/w/eaten": ("input", True, False, digest("e")),
        "/w/saved.tmp": ("transient", True, True, digest("s")),
        "/w/saved": ("output", True, True, digest("s")),
        "/w/log": ("output", False, True, digest("ll")),
        "/w/name1": ("input", True, False, digest("h")),
        "/w/name2": ("output", False, True, digest("h")),
        "stdout": ("output", False, True, digest("hello")),
    }


def test_packages_and_classes(graph: Graph) -> None:
    numpy, libc = "pkg:pypi/numpy@1.26.4", "pkg:deb/debian/libc6@2.36-9?arch=amd64"
    builder = ExecutionBuilder("a", facets={"packages": {numpy: {"requested": True}}})
    p = builder.process("x")
    builder.read(p, "/opt/numpy.py", "1", package=numpy)
    builder.read(p, "/opt/libc.so", "2", package=libc)
    builder.read(p, "/w/x.csv", "3")
    builder.read(p, "/w/odd", "4", package="odd thing")
    files = detail(graph, builder)
    assert files["/opt/numpy.py"]["class"] == "package"
    assert files["/opt/numpy.py"]["package"] == {
        "manager": "pypi", "name": "numpy", "version": "1.26.4", "requested": True,
    }  # fmt: skip
    assert files["/opt/libc.so"]["class"] == "system"
    assert files["/opt/libc.so"]["package"]["name"] == "libc6"
    assert (files["/w/x.csv"]["class"], files["/w/x.csv"]["package"]) == ("data", None)
    assert files["/w/odd"]["package"] is None


def test_paths_that_are_not_text(graph: Graph) -> None:
    builder = ExecutionBuilder("a")
    builder.read(builder.process("x"), b"/w/\xff%41", "x")
    files = detail(graph, builder)
    assert files["/w/\ufffd%41"]["path_b64"] == "L3cv/yU0MQ=="


def test_network(graph: Graph) -> None:
    builder = ExecutionBuilder("a")
    p = builder.process("curl")
    builder.read(p, "tcp://10.0.0.1:443", how="connect")
    builder.read(p, "tcp://[::1]:80", how="connect")
    builder.read(p, "https://example.org/x.csv", how="fetch")
    found = detail(graph, builder)
    assert len(found) == 1
    assert [(n["address"], n["host"], n["port"], n["by"]) for n in found["network"]] == [
        ("https://example.org/x.csv", "example.org", 443, "e1.p1"),
        ("10.0.0.1", None, 443, "e1.p1"),
        ("::1", None, 80, "e1.p1"),
    ]


def test_versions_of_a_path(graph: Graph) -> None:
    builder = ExecutionBuilder("a")
    p = builder.process("x")
    builder.read(p, "/w/f", "one")
    builder.write(p, "/w/f", "two")
    graph.fold(builder.events)
    later = ExecutionBuilder("b", at=9000)
    later.read(later.process("x"), "/w/f", "three", stored=False)
    graph.fold(later.events)
    found = list_versions(graph, locator("/w/f"))
    assert [(v.id, v.found, v.digest, v.stored) for v in found] == [
        ("e1:/w/f@1", True, digest("one"), True),
        ("e1:/w/f@2", False, digest("two"), True),
        ("e2:/w/f@1", True, digest("three"), False),
    ]
