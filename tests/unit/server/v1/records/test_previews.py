"""What is shown of bytes, from the bytes alone."""

import base64
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.documents.ids import Digest
from clew.server.v1.records.previews import MAX_TEXT_BYTES, make_preview

preview = partial(make_preview, "e1:x@1", Digest("blake3:00"))
PNG = b"\x89PNG\r\n\x1a\n" + b"rest"


def test_nothing() -> None:
    assert preview("x.csv", b"", 0).kind == "empty"


def test_text_may_be_cut_within_a_letter() -> None:
    data = b"a" * (MAX_TEXT_BYTES - 1) + "ü".encode()
    found = preview("x.txt", data, len(data))
    assert (found.kind, found.truncated, found.text) == (
        "text",
        True,
        "a" * (MAX_TEXT_BYTES - 1),
    )


def test_a_preview_of_binary_data() -> None:
    assert preview("x.txt", b"a\0b", 3).kind == "binary"
    assert preview("x.txt", b"\xff\xfe\xfa", 3).kind == "binary"


def test_a_table_is_bounded() -> None:
    rows = b"n,text\n" + b"".join(b"%d,%s\n" % (n, b"x" * 2000) for n in range(20))
    found = preview("data.CSV", rows, len(rows))
    assert (found.kind, found.columns, len(found.rows)) == ("table", ("n", "text"), 20)
    assert max(len(cell) for row in found.rows for cell in row) <= 500
    many = "".join(f"{n}\n" for n in range(1000)).encode()
    found = preview("x.csv", many, len(many))
    assert (len(found.rows), found.truncated) == (100, True)
    wide = ",".join(map(str, range(1000))).encode()
    found = preview("x.csv", wide, len(wide))
    assert (len(found.columns), found.truncated) == (100, True)


def test_a_table_in_a_file_without_an_ending() -> None:
    """As artifacts of pipelines are."""
    found = preview("/runs/r1.x/table", b"a,b\n1,2\n3,4\n", 12)
    assert (found.kind, found.columns) == ("table", ("a", "b"))
    assert preview("table", b"a\tb\n1\t2\n3\t4\n", 12).kind == "table"
    for text in (b"a,b\n1,2\n", b"One, two.\nThree.\nFour.\n", b"a\nb\nc\n"):
        assert preview("notes", text, len(text)).kind == "text"
    assert preview("notes.txt", b"a,b\n1,2\n3,4\n", 12).kind == "text"


def test_the_last_row_of_a_part_is_left_out() -> None:
    data = b"a,b\n" + b"1,2\n" * (MAX_TEXT_BYTES // 4)
    found = preview("x.tsv", data, len(data))
    assert found.columns == ("a,b",)
    found = preview("x.csv", data, len(data))
    assert (found.rows[-1], found.truncated) == (("1", "2"), True)


def test_an_image_is_shown_whole_or_not_at_all() -> None:
    found = preview("x", PNG, len(PNG))
    assert (found.media_type, base64.b64decode(found.image)) == ("image/png", PNG)
    part = preview("x", PNG, len(PNG) + 1)
    assert (part.kind, part.image, part.truncated) == ("image", None, True)
    assert preview("x.png", b"<svg onload=alert(1)>", 21).kind == "text"


@pytest.mark.parametrize("name", ["x", "x.csv", "x.tsv"])
@given(data=st.binary(max_size=2000))
def test_anything_is_shown_as_something(name: str, data: bytes) -> None:
    found = preview(name, data, len(data))
    assert found.kind in ("text", "table", "image", "binary", "empty")


def test_kinds_by_name() -> None:
    page = b"<script>alert(1)</script>"
    assert preview("plot.HTML", page, len(page)).kind == "html"
    assert preview("nb.ipynb", b"{}", 2).kind == "notebook"
    assert preview("m.json", b"{}", 2).media_type == "application/json"
    assert preview("t.parquet", b"PAR1\0\0", 6).media_type == "application/vnd.apache.parquet"
    drawing = b"<svg xmlns='http://www.w3.org/2000/svg'/>"
    found = preview("a.svg", drawing, len(drawing))
    assert (found.kind, found.media_type) == ("image", "image/svg+xml")
    assert preview("a.svg", b"\xff\xfe", 2).kind == "binary"


def test_malformed_events_have_no_series() -> None:
    found = preview("events.out.tfevents.1.host", b"\x05\0\0", 3)
    assert (found.kind, found.series) == ("scalars", {})
