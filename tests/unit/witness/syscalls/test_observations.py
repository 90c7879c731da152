import os

from hypothesis import given
from hypothesis import strategies as st

from clew.witness.syscalls.observations import normalize_path

PARTS = st.sampled_from([b"a", b".hidden", b"..b", b"c.", b"d..", b".", b"..", b""])


@given(st.lists(PARTS, max_size=6), PARTS.filter(bool))
def test_a_plain_path_is_what_normpath_says(directories: list[bytes], name: bytes) -> None:
    path = b"/" + b"/".join([*directories, name])
    assert normalize_path(path) == b"/" + os.path.normpath(path).lstrip(b"/")
