"""Which nodes of a graph play the same part."""

from hypothesis import given
from hypothesis import strategies as st

from clew.prov.queries.lineage.groups import GROUP_FROM, find_classes, find_groups

Sides = tuple[list[list[int]], list[list[int]]]


def sides(count: int, edges: list[tuple[int, int]]) -> Sides:
    before: list[list[int]] = [[] for _ in range(count)]
    after: list[list[int]] = [[] for _ in range(count)]
    for start, end in edges:
        after[start].append(end)
        before[end].append(start)
    return before, after


def test_the_iterations_of_a_loop_are_one_group() -> None:
    """One file goes into ten processes, and each makes a file: two groups."""
    edges = [(0, n) for n in range(1, 11)] + [(n, n + 10) for n in range(1, 11)]
    kinds = ["file"] + ["process"] * 10 + ["file"] * 10
    groups = find_groups([kinds.__getitem__], *sides(21, edges), fits=24)
    assert groups == [list(range(1, 11)), list(range(11, 21))]


def test_what_was_made_from_other_things_is_in_another_group() -> None:
    edges = [(0, n) for n in range(2, 8)] + [(1, n) for n in range(8, 14)]
    kinds = ["raw", "settings"] + ["file"] * 12
    groups = find_groups([kinds.__getitem__], *sides(14, edges), fits=24)
    assert groups == [list(range(2, 8)), list(range(8, 14))]


def test_few_like_things_are_no_group() -> None:
    count = GROUP_FROM - 1
    assert find_groups([lambda _: "file"], *sides(count, []), fits=24) == []


def test_less_alike_things_are_grouped_only_where_more_do_not_fit() -> None:
    edges = [(n, 10) for n in range(10)]
    levels = [lambda n: n, lambda n: n == 10]
    assert find_groups(levels, *sides(11, edges), fits=10) == []
    assert find_groups(levels, *sides(11, edges), fits=9) == [list(range(10))]


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40), st.data())
def test_nodes_of_a_class_have_neighbours_of_the_same_classes(
    edges: list[tuple[int, int]], data: st.DataObject
) -> None:
    kinds = data.draw(st.lists(st.sampled_from("ab"), min_size=12, max_size=12))
    before, after = sides(12, edges)
    classes = find_classes(kinds, before, after)
    for one in range(12):
        for other in range(12):
            if classes[one] == classes[other]:
                assert kinds[one] == kinds[other]
                for side in (before, after):
                    assert {classes[n] for n in side[one]} == {classes[n] for n in side[other]}
