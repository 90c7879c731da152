"""The blocks of a log: they hold whole lines, however the bytes arrive."""

import itertools
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from clew.documents.pipelines.logs import LogBlock
from clew.server.logs.line_index import BLOCK_BYTES, LineIndex
from clew.server.logs.log_reader import LogReader
from clew.server.logs.log_source import LogSource


def index(*pieces: bytes) -> LineIndex:
    made = LineIndex()
    made.feed(pieces)
    return made


def test_a_short_log_is_one_block() -> None:
    assert index().lines == 0
    assert index(b"a\nb").lines == 2
    assert index(b"a\nb\n").lines == 2
    assert index(b"a\nb\n").blocks == [LogBlock(0, 0)]


@given(
    lines=st.lists(st.integers(0, 3 * BLOCK_BYTES // 2), max_size=12),
    cuts=st.lists(st.integers(0, 4 * BLOCK_BYTES), max_size=5),
)
def test_blocks_join_to_the_log_and_begin_with_lines(lines: list[int], cuts: list[int]) -> None:
    data = b"".join(b"x" * size + b"\n" for size in lines)
    borders = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in itertools.pairwise(borders)]
    made = index(*pieces)
    assert made.blocks == index(data).blocks
    spans = [made.span(number) for number in range(len(made.blocks))]
    assert b"".join(data[a:b] for a, b in spans) == data
    assert all(b - a <= BLOCK_BYTES for a, b in spans)
    for block, following in zip(made.blocks, made.blocks[1:], strict=False):
        part = data[block.offset : following.offset]
        is_divided = not part.endswith(b"\n")
        assert following.line - block.line == part.count(b"\n") + is_divided


def test_a_long_line_is_not_divided_within_a_character() -> None:
    data = ("ü" * BLOCK_BYTES).encode()
    made = index(b"a" + data)
    for number in range(len(made.blocks)):
        start, stop = made.span(number)
        (b"a" + data)[start:stop].decode()


def test_search_counts_lines(tmp_path: Path) -> None:
    file = tmp_path / "log"
    needles = {7: " needle, Needle"}
    lines = [f"line {n}{needles.get(n % 1000, '')}" for n in range(30_000)]
    file.write_text("\n".join(lines))
    source = LogSource("a" * 32, complete=False, store=tmp_path, file=file)
    reader = LogReader()
    assert reader.position("stdout", source).lines == 30_000
    found = reader.search("stdout", source, "NEEDLE", first_block=0)
    assert found.lines == [number for number in range(30_000) if number % 1000 == 7]
    assert found.next_block is None
    with file.open("a") as more:
        more.write("\nneedle\n")
    assert reader.position("stdout", source).lines == 30_001
    assert reader.search("stdout", source, "needle", first_block=1).lines[-1] == 30_000
    last = len(reader.position("stdout", source).blocks) - 1
    assert reader.read_block("stdout", source, last).endswith(b"needle\n")
