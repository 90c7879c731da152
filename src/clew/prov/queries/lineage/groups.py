"""Find nodes that play the same part in a graph, so that a drawing can show them as one.

Nodes are alike if they are the same kind of thing, made from the same kinds and gone into the same
kinds, as far as the graph reaches: the files of a package, the iterations of a loop, the parts of a
directory. Pure functions of numbers; the callers say what "the same kind of thing" is.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence

GROUP_FROM = 5
"""So many nodes that play the same part stand as one."""

Neighbours = Sequence[Iterable[int]]


def find_classes(kinds: Sequence[Hashable], before: Neighbours, after: Neighbours) -> list[int]:
    """The class of each node: refined until no class splits by the classes of its neighbours."""
    classes, count = _number(kinds)
    while True:
        refined = [
            (
                classes[node],
                tuple(sorted({classes[other] for other in before[node]})),
                tuple(sorted({classes[other] for other in after[node]})),
            )
            for node in range(len(kinds))
        ]
        classes, found = _number(refined)
        if found == count:
            return classes
        count = found


def find_groups(
    levels: Sequence[Callable[[int], Hashable]], before: Neighbours, after: Neighbours, *, fits: int
) -> list[list[int]]:
    """The groups of at least `GROUP_FROM` like nodes, each in order.

    `levels` say which nodes are the same kind of thing, from narrow to wide: the first one is taken
    with which no node has more than `fits` neighbours on a side, else the last.
    """
    groups: list[list[int]] = []
    for kind in levels:
        classes = find_classes([kind(node) for node in range(len(before))], before, after)
        members: dict[int, list[int]] = {}
        for node, number in enumerate(classes):
            members.setdefault(number, []).append(node)
        groups = [alike for alike in members.values() if len(alike) >= GROUP_FROM]
        unit = list(range(len(before)))
        for alike in groups:
            for node in alike:
                unit[node] = alike[0]
        if all(
            len({unit[o] for o in others}) <= fits for side in (before, after) for others in side
        ):
            break
    return groups


def _number(values: Iterable[Hashable]) -> tuple[list[int], int]:
    """Equal values get equal numbers; and how many there are."""
    known: dict[Hashable, int] = {}
    numbers = [known.setdefault(value, len(known)) for value in values]
    return numbers, len(known)
