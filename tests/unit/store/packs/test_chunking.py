"""Cutting depends on the content alone, and an edit costs only what it touches."""

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from clew.store.packs.chunking import MAX_CHUNK, MIN_CHUNK, cut_buffers, find_cuts


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def flat(items: list[list[memoryview] | int]) -> list[int]:
    """Lengths of the chunks."""
    return [len(chunk) for item in items if not isinstance(item, int) for chunk in item]


@given(
    st.integers(0, 6 << 20),
    st.lists(st.integers(0, 6 << 20), max_size=6),
    st.sampled_from([b"", b"a", b"0123456789"]),
)
def test_however_it_is_read_it_is_cut_the_same(size: int, at: list[int], repeated: bytes) -> None:
    data = (repeated * size)[:size] if repeated else noise(size)
    borders = sorted({0, size, *(a for a in at if a < size)})
    buffers = [data[a:b] for a, b in pairwise(borders)]
    found = flat(list(cut_buffers(buffers)))
    ends = find_cuts(data)
    assert found == [b - a for a, b in pairwise([0, *ends])]
    assert sum(found) == size


def test_chunks_keep_their_bounds() -> None:
    ends = find_cuts(noise(8 << 20))
    sizes = [b - a for a, b in pairwise([0, *ends])]
    assert max(sizes) <= MAX_CHUNK
    assert min(sizes[:-1]) >= MIN_CHUNK


def test_the_cuts_are_those_of_the_format() -> None:
    """Computed from docs/formats/store.md, byte by byte."""
    state, gear = 0, []
    for _ in range(256):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
        gear.append(mixed ^ mixed >> 31)
    data, ends = noise(1 << 20), [0]
    while len(data) - ends[-1] > MIN_CHUNK:
        at, value = ends[-1] + MIN_CHUNK, 0
        while at < len(data):
            value = ((value << 1) + gear[data[at]]) % 2**64
            if value < 1 << 48:
                break
            at += 1
        ends.append(at)
    assert find_cuts(data) == [*ends[1:], len(data)]


def test_holes_come_out_as_they_went_in() -> None:
    found = list(cut_buffers([noise(1 << 20), 5 << 30, noise(10), 7]))
    assert [item for item in found if isinstance(item, int)] == [5 << 30, 7]
    assert sum(flat(found)) == (1 << 20) + 10


def test_an_edit_and_an_insertion_cost_little() -> None:
    """The promise is 3 % for any large file; this one is middling."""
    data = noise(100 << 20)
    middle, edit = len(data) // 2, noise(1 << 20, seed=2)
    edited = b"!" + data[:middle] + edit + data[middle + len(edit) :]

    def chunks(content: bytes) -> dict[int, int]:
        return {hash(content[a:b]): b - a for a, b in pairwise([0, *find_cuts(content)])}

    before, after = chunks(data), chunks(edited)
    new = sum(size for key, size in after.items() if key not in before)
    assert new <= len(data) * 0.03
