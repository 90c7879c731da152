"""Parts of files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import UsageError
from clew.viewer.byte_ranges import Unsatisfiable, parse_content_range, parse_range


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("bytes=0-0", (0, 1)),
        ("bytes=5-", (5, 5)),
        ("bytes=5-100", (5, 5)),
        ("bytes=-3", (7, 3)),
        ("bytes=-100", (0, 10)),
    ],
)
def test_a_part_is_found(header: str, part: tuple[int, int]) -> None:
    found = parse_range(header, 10)
    assert found is not None
    assert (found.first, found.length) == part


@pytest.mark.parametrize("header", [None, "", "bytes=-", "bytes=5-2", "bytes=0-1,3-4", "lines=1-2"])
def test_what_is_not_understood_asks_for_all(header: str | None) -> None:
    assert parse_range(header, 10) is None


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=99-100", "bytes=-0"])
def test_what_is_not_there_cannot_be_had(header: str) -> None:
    with pytest.raises(Unsatisfiable):
        parse_range(header, 10)


@given(st.integers(0, 50), st.integers(0, 50), st.integers(1, 30))
def test_a_part_lies_in_the_file(first: int, last: int, size: int) -> None:
    try:
        found = parse_range(f"bytes={first}-{last}", size)
    except Unsatisfiable:
        assert first >= size
        return
    if found is not None:
        assert list(range(size))[first : last + 1] == list(range(found.first, found.end))


def test_a_part_that_is_sent_must_make_sense() -> None:
    found = parse_content_range("bytes 5-9/20")
    assert (found.first, found.length, found.end, found.total) == (5, 5, 10, 20)
    assert found.header == "bytes 5-9/20"
    none = parse_content_range("bytes */20")
    assert (none.first, none.length, none.total) == (20, 0, 20)
    for wrong in ("bytes 9-5/20", "bytes 0-20/20", "bytes 0-1/*", "", "bytes */*"):
        with pytest.raises(UsageError):
            parse_content_range(wrong)
