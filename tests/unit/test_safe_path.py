"""Paths of a record never leave the directory that its files are written to."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import Damaged
from clew.safe_path import SafeDirectory, check_relative, escape_names, unescape_names

BAD = [
    b"",
    b"/",
    b"/etc/passwd",
    b"..",
    b"../x",
    b"a/../../x",
    b"a/..",
    b".",
    b"./a",
    b"a//b",
    b"a/",
    b"a\0b",
    b"a/" * 300 + b"a",
]


@pytest.mark.parametrize("path", BAD)
def test_a_path_that_is_not_plain_is_refused(path: bytes, tmp_path: Path) -> None:
    with pytest.raises(Damaged, match="not a valid relative path"):
        SafeDirectory(tmp_path).join(path)
    with pytest.raises(Damaged):
        SafeDirectory(tmp_path).make_directory(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "path", [b"a", b"...", b"a/b/c", b"\xff/\xfe", b"a b/\n", b"a/" * 200 + b"a"]
)
def test_a_plain_path_gets_its_directories(path: bytes, tmp_path: Path) -> None:
    place = SafeDirectory(tmp_path).join(path)
    assert place == os.fsencode(tmp_path) + b"/" + path
    assert os.path.isdir(os.path.dirname(place))


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (inside / "direct").symlink_to(outside)
    (inside / "a").mkdir()
    (inside / "a" / "up").symlink_to("../..")
    (inside / "file").write_text("x")
    for path in (b"direct/x", b"direct/x/y", b"a/up/outside/x", b"file/x"):
        with pytest.raises(Damaged, match="is not a directory"):
            SafeDirectory(inside).join(path)
    with pytest.raises(Damaged, match="is not a directory"):
        SafeDirectory(inside).make_directory(b"direct")
    assert list(outside.iterdir()) == []


def test_a_link_that_the_same_record_wrote_is_not_followed(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    places = SafeDirectory(inside)
    os.symlink(os.fsencode(outside), places.join(b"a"))  # noqa: PTH211
    with pytest.raises(Damaged):
        places.join(b"a/passwd")
    places.join(b"b/x")
    with pytest.raises(FileExistsError):
        os.symlink(os.fsencode(outside), places.join(b"b"))  # noqa: PTH211


@given(st.binary(max_size=30))
def test_what_is_joined_stays_inside(path: bytes) -> None:
    try:
        check_relative(path)
    except Damaged:
        return
    whole = os.path.normpath(b"/directory/" + path)
    assert whole == b"/directory/" + path


@pytest.mark.parametrize(
    ("path", "escaped"),
    [
        (b"a/.clew/config.toml", b"a/_.clew/config.toml"),
        (b".clew-checkout", b"_.clew-checkout"),
        (b"a/.GIT/.hg/x", b"a/_.GIT/_.hg/x"),
        (b"_.git/x", b"__.git/x"),
        (b".gitignore/a.git/.clew2", b".gitignore/a.git/.clew2"),
        (b"/.git", b"/_.git"),
    ],
)
def test_names_of_projects_and_repositories_are_escaped(path: bytes, escaped: bytes) -> None:
    assert escape_names(path) == escaped
    assert unescape_names(escaped) == path
