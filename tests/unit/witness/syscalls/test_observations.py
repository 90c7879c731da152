import os

from hypothesis import given
from hypothesis import strategies as st

from clew.witness.syscalls.observations import group_looks, normalize_path

PARTS = st.sampled_from([b"a", b".hidden", b"..b", b"c.", b"d..", b".", b"..", b""])


@given(st.lists(PARTS, max_size=6), PARTS.filter(bool))
def test_a_plain_path_is_what_normpath_says(directories: list[bytes], name: bytes) -> None:
    path = b"/" + b"/".join([*directories, name])
    assert normalize_path(path) == b"/" + os.path.normpath(path).lstrip(b"/")


def test_looks_with_the_same_time_are_one_group_that_a_listing_begins() -> None:
    a, b, c = (
        ("absent", "file://m/a", ""),
        ("present", "file://m/b", ""),
        ("link", "file://m/c", "d"),
    )
    listing = ("listing", "file://m/d", "")
    looked = {a: 1, b: 1, c: 2, listing: 2, ("times", "file://m/b", "1 2 3"): 2}
    used = {"file://m/b"}
    assert [*group_looks(looked, used)] == [
        (1, [a]),  # that b exists follows from its use
        (2, [c]),
        (2, [listing, ("times", "file://m/b", "1 2 3")]),
    ]
