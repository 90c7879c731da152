"""The fewest executions to run again: against looking at every set of them."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.replay.repeat.recreate_plan import Candidate, CannotRecreate, plan_recreation


def work(number: int, needs: str, makes: str) -> Candidate:
    return Candidate(number, frozenset(needs), frozenset(makes))


def plan(wanted: str, *works: Candidate, **more: int) -> list[int]:
    found = plan_recreation(
        wanted, lambda content: [w for w in works if content in w.outputs], **more
    )
    return [work.number for work in found]


def test_a_chain_runs_in_order() -> None:
    assert plan("c", work(1, "", "a"), work(2, "a", "b"), work(3, "b", "c")) == [1, 2, 3]


def test_what_is_there_is_taken() -> None:
    assert plan("c", work(1, "", "a"), work(3, "", "c")) == [3]


def test_the_shorter_way() -> None:
    long = [work(1, "", "a"), work(2, "a", "b"), work(3, "b", "z")]
    assert plan("z", *long, work(9, "", "z")) == [9]


def test_one_that_serves_twice_is_better_than_two() -> None:
    works = [work(1, "", "a"), work(2, "", "b"), work(3, "", "ab"), work(4, "ab", "z")]
    assert plan("z", *works) == [3, 4]


def test_of_two_alike_the_first() -> None:
    assert plan("z", work(1, "", "z"), work(2, "", "z")) == [1]


def test_a_later_execution_may_have_to_run_first() -> None:
    assert plan("z", work(1, "a", "z"), work(7, "", "a")) == [7, 1]


def test_an_execution_that_needs_its_own_output_cannot_be_first() -> None:
    with pytest.raises(CannotRecreate) as caught:
        plan("a", work(1, "a", "a"))
    assert caught.value.missing == {"a"}
    assert plan("a", work(1, "b", "a"), work(2, "a", "b"), work(3, "x", "b"), work(4, "", "x")) == [
        4,
        3,
        1,
    ]


def test_what_stands_in_the_way_is_named() -> None:
    with pytest.raises(CannotRecreate) as caught:
        plan("z", work(1, "ab", "z"), work(2, "k", "a"), work(3, "", "b"))
    assert caught.value.missing == {"k"}
    with pytest.raises(CannotRecreate) as caught:
        plan("z")
    assert caught.value.missing == {"z"}


def test_many_repetitions_are_as_one() -> None:
    """Twelve steps, each of them ten times: without that, more ways than could be tried."""
    steps = "abcdefghijklm"
    works = [
        work(10 * at + again, needs, makes)
        for at, (needs, makes) in enumerate(zip(("", *steps), steps, strict=False))
        for again in range(10)
    ]
    assert plan("m", *works, limit=100) == [10 * at for at in range(len(steps))]


CONTENTS = "abcdef"
NEEDS = st.sets(st.sampled_from(CONTENTS), max_size=2)
MAKES = st.sets(st.sampled_from(CONTENTS), min_size=1, max_size=2)
WORKS = st.lists(st.tuples(NEEDS, MAKES), max_size=7)


def reaches(wanted: str, works: tuple[Candidate, ...]) -> bool:
    there: set[str] = set()
    for _ in works:
        for one in works:
            if one.inputs <= there:
                there |= one.outputs
    return wanted in there


def smallest(wanted: str, works: list[Candidate]) -> int | None:
    sizes = range(1, len(works) + 1)
    return next(
        (n for n in sizes if any(reaches(wanted, some) for some in combinations(works, n))), None
    )


def runs(wanted: str, found: list[Candidate]) -> bool:
    """Whether each finds what it needs when its turn comes, and the last brings what is wanted."""
    there: set[str] = set()
    for one in found:
        if not one.inputs <= there:
            return False
        there |= one.outputs
    return wanted in there


@given(WORKS)
def test_none_is_smaller(drawn: list[tuple[set[str], set[str]]]) -> None:
    works = [
        Candidate(n, frozenset(needs), frozenset(makes))
        for n, (needs, makes) in enumerate(drawn, 1)
    ]
    least = smallest("a", works)

    def makers(content: str) -> list[Candidate]:
        return [one for one in works if content in one.outputs]

    if least is None:
        with pytest.raises(CannotRecreate):
            plan_recreation("a", makers)
        return
    found = plan_recreation("a", makers)
    assert runs("a", found)
    assert len(found) == least


@given(WORKS)
def test_without_time_to_search_it_is_still_a_way(drawn: list[tuple[set[str], set[str]]]) -> None:
    works = [
        Candidate(n, frozenset(needs), frozenset(makes))
        for n, (needs, makes) in enumerate(drawn, 1)
    ]
    if smallest("a", works) is not None:
        found = plan_recreation(
            "a", lambda content: [w for w in works if content in w.outputs], limit=0
        )
        assert runs("a", found)
        for one in found:  # and nothing in it is superfluous
            assert not reaches("a", tuple(other for other in found if other is not one))
