"""Positions in logs, by the timestamps of their lines."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from clew.kube.backend.log_positions import LogLines, parse_position

BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
Line = tuple[int, str]


def stamp(at: int) -> str:
    """With nanoseconds, as the kubelet writes it."""
    time = BEGIN + timedelta(microseconds=at * 700_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S.%f000Z")


def encode(lines: list[Line]) -> bytes:
    return b"".join(f"{stamp(at)} {text}\n".encode() for at, text in lines)


TEXTS = st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=8)
LINES = st.lists(st.tuples(st.integers(0, 6), TEXTS), max_size=12).map(
    lambda lines: sorted(lines, key=lambda line: line[0])
)


@given(lines=LINES, cuts=st.lists(st.integers(0, 400), max_size=5))
def test_the_parts_are_the_lines_without_their_times(lines: list[Line], cuts: list[int]) -> None:
    data, found, reader = encode(lines), b"", LogLines(None)
    for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(data)], strict=True):
        found += reader.feed(data[start:end])
    assert found + reader.end() == b"".join(f"{text}\n".encode() for _, text in lines)


@given(lines=LINES, read=st.integers(0, 12))
def test_a_position_leads_to_the_next_line(lines: list[Line], read: int) -> None:
    """Kubernetes answers with all lines of the second of the position, and those after it."""
    reader = LogLines(None)
    reader.feed(encode(lines[:read]))
    if not lines[:read]:
        return
    position = parse_position(str(reader.position))
    assert position is not None
    since = datetime.fromisoformat(position.since)
    answer = [line for line in lines if datetime.fromisoformat(stamp(line[0])) >= since]
    again = LogLines(position)
    rest = again.feed(encode(answer)) + again.end()
    assert rest == b"".join(f"{text}\n".encode() for _, text in lines[read:])
    if lines[read:]:
        assert str(again.position).startswith(stamp(lines[-1][0]))


@given(st.text(max_size=40))
def test_other_texts_are_no_positions(text: str) -> None:
    found = parse_position(text)
    assert found is None or str(found) == text


def test_an_endless_line_comes_in_parts() -> None:
    reader = LogLines(None)
    part = b"x" * (200 << 10)
    assert reader.feed(f"{stamp(1)} ".encode() + part) == b""
    found = reader.feed(part) + reader.feed(part) + reader.feed(b"\n")
    assert found == part * 3 + b"\n"
    assert reader.feed(encode([(2, "next")])) == b"next\n"


def test_a_line_that_did_not_end_comes_at_the_end() -> None:
    reader = LogLines(None)
    assert reader.feed(f"{stamp(1)} begun".encode()) == b""
    assert reader.end() == b"begun"
