"""Why one process did something else: from what it saw, and never from names."""

from collections.abc import Callable

import pytest
from tests.unit.replay.explain.divergent_records import both, details, why
from tests.unit.replay.record_builder import RecordBuilder

from clew.prov.queries.execution_record import Edge

Facts = Callable[[RecordBuilder, int, int], object]
CHANCE = ["random", "clock"]


def libraries(run: RecordBuilder, train: int, n: int) -> None:
    for name in ("a", "b"):
        run.reads(train, f"/site/numpy/{name}.py", b"%d" % n, package=f"pkg:pypi/numpy@{n}.0")
    run.reads(train, "/site/same/x.py", b"same", package="pkg:pypi/same@1.0")


def network(run: RecordBuilder, train: int, n: int) -> None:
    key = run.version("/unused", None)
    run.versions[key] = run.versions[key]._replace(locator="tcp://192.0.2.1:443")
    run.used.append(Edge(train, key, run.now(), "connect"))


@pytest.mark.parametrize(
    ("facts", "causes", "detail"),
    [
        (libraries, ["library"], "numpy 1.0 → 2.0"),
        (
            lambda run, train, n: run.reads(
                train, "/site/numpy/a.py", b"%d" % n, package="pkg:pypi/numpy@1.0"
            ),
            ["library"],
            "numpy 1.0, but /site/numpy/a.py differs",
        ),
        (
            lambda run, train, n: (
                run.looks(train, "absent", "/w/settings", "ENOENT")
                if n == 1
                else run.reads(train, "/w/settings", b"fast")
            ),
            ["input"],
            "/w/settings was absent, then there",
        ),
        # A file that only one opened is what it did, not what it saw.
        (lambda run, train, n: run.reads(train, f"/w/part{n}", b"part"), CHANCE, None),
        # An output that was there before is no reason.
        (
            lambda run, train, n: run.looks(
                train, *[("absent", "/w/x", "ENOENT"), ("times", "/w/x", "1 1 1")][n - 1]
            ),
            CHANCE,
            None,
        ),
        (
            lambda run, train, n: run.lists(train, "/w/data", *["a", "b"][:n]),
            ["listing"],
            "/w/data was listed with other names: +b",
        ),
        (
            lambda run, train, n: run.looks(train, "link", "/w/current", f"v{n}"),
            ["input"],
            "the link /w/current led to v1, then to v2",
        ),
        (lambda run, train, n: run.reads(train, "stdin", b"%d" % n), ["input"], "stdin differs"),
        (network, ["network"], "it connected to tcp://192.0.2.1:443"),
        (
            lambda run, train, n: run.reads(train, "/dev/urandom", None),
            CHANCE,
            "it read /dev/urandom",
        ),
        (
            lambda run, train, n: run.reads(train, "/dev/nvidia0", None) if n == 1 else None,
            ["gpu"],
            "it used a GPU (/dev/nvidia0), and then had none",
        ),
        (
            lambda run, train, n: (
                run.reads(train, "/dev/nvidia0", None)
                if n == 1
                else run.looks(train, "absent", "/dev/nvidia0", "ENOENT")
            ),
            ["gpu"],
            "it used a GPU (/dev/nvidia0), and then had none",
        ),
        # Both had it.
        (lambda run, train, n: run.reads(train, "/dev/nvidia0", None), CHANCE, None),
    ],
)
def test_a_cause(facts: Facts, causes: list[str], detail: str | None) -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        train = run.process("train")
        facts(run, train, n)
        run.writes(train, "/w/x", b"%d" % n)

    a, b = both(tell)
    assert why(a, b) == ("train", causes)
    assert detail in (None, details(a, b)[0])


def test_a_variable() -> None:
    a, b = both(
        lambda run, n: run.writes(run.process("train"), "/w/x", b"%d" % n) and None,
        variables=lambda n: {"SEED": str(n), "HOME": "/h"},
    )
    assert why(a, b) == ("train", ["variable"])
    assert details(a, b) == ["SEED: 1 → 2"]


def test_a_pinned_source_of_chance_is_not_a_cause() -> None:
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


def test_dates_alone_point_to_the_clock() -> None:
    def tell(run: RecordBuilder, n: int) -> None:
        run.writes(run.process("stamp"), "/w/x", b"made at 2026-11-15 09:00:0%d\n" % n)

    assert why(*both(tell)) == ("stamp", ["clock", "random"])
