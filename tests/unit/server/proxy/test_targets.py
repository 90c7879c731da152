"""Which addresses are whose, and what targets are asked for."""

import pytest

from clew.errors import UsageError
from clew.server.proxy.targets import (
    Target,
    TargetKey,
    match_path,
    parse_targets,
    serves_prefix,
    upstream_path,
)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        (b"/notebook/me/first/lab", TargetKey("notebook", "me", "first")),
        (b"/tensorboard/team-1/x.y/", TargetKey("tensorboard", "team-1", "x.y")),
        (b"/pvcviewer/a/b", TargetKey("pvcviewer", "a", "b")),
        (b"/pvcviewers/a/b/", TargetKey("pvcviewer", "a", "b")),
    ],
)
def test_a_path_names_a_target(path: bytes, key: TargetKey) -> None:
    found = match_path(path)
    assert found is not None
    assert found[0] == key
    assert path.startswith(found[1])


@pytest.mark.parametrize(
    "path",
    [
        b"/",
        b"/notebook/me",
        b"/notebook/me/",
        b"/notebook/Me/x/",
        b"/notebook/../x/",
        b"/notebook/me/-x/",
        b"/notebook/me/x%2f/",
        b"/notebook/me/x?y",
        b"/api/v1/notebook/me/x/",
        b"notebook/me/x/",
        b"/notebook/me/" + b"x" * 254 + b"/",
    ],
)
def test_other_paths_do_not(path: bytes) -> None:
    assert match_path(path) is None
    assert match_path(path, own_prefixes={"api"}) is None


def test_a_viewers_first_part_may_be_chosen_but_neither_the_servers_nor_a_namespace() -> None:
    viewer = TargetKey("pvcviewer", "me", "x"), b"/volumes/me/x"
    assert match_path(b"/volumes/me/x/y", own_prefixes={"api"}) == viewer
    assert match_path(b"/volumes/me/x/y") is None
    assert match_path(b"/api/me/x/y", own_prefixes={"api"}) is None
    assert match_path(b"/a%70i/me/x/y", own_prefixes={"api"}) is None
    assert match_path(b"/notebook/me/x/y", own_prefixes=()) == (
        TargetKey("notebook", "me", "x"),
        b"/notebook/me/x",
    )
    chosen = Target("a", 1, base="volumes")
    assert serves_prefix(b"/volumes/me/x", chosen)
    assert serves_prefix(b"/pvcviewer/me/x", chosen)
    assert not serves_prefix(b"/other/me/x", chosen)
    assert not serves_prefix(b"/volumes/me/x", Target("a", 1))
    assert not serves_prefix(b"/volumes/me/x", Target("a", 1, base="volumes/me"))


@pytest.mark.parametrize(
    ("rewrite", "asked"),
    [
        (None, b"/notebook/me/x/a/b%20c"),
        ("/", b"/a/b%20c"),
        ("/base", b"/base/a/b%20c"),
        ("/base/deep/", b"/base/deep/a/b%20c"),
    ],
)
def test_what_matched_is_replaced(rewrite: str | None, asked: bytes) -> None:
    assert upstream_path(b"/notebook/me/x/a/b%20c", b"/notebook/me/x", rewrite) == asked


def test_a_table_is_read() -> None:
    found = parse_targets(
        """
        ["notebook/me/one"]
        address = "http://localhost:8888/"
        ["pvcviewers/me/two"]
        address = "[::1]:80"
        rewrite = "/"
        timeout = 5
        headers = {X-Root = "/two"}
        """,
        "here",
    )
    assert found == {
        "notebook/me/one": Target("localhost", 8888),
        "pvcviewer/me/two": Target("::1", 80, "/", {"X-Root": "/two"}, 5.0),
    }


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "x = 1",
        '["other/me/x"]\naddress = "a:1"',
        '["notebook/me/x/y"]\naddress = "a:1"',
        '["notebook/me/x"]',
        '["notebook/me/x"]\naddress = "a"',
        '["notebook/me/x"]\naddress = "a:99999"',
        '["notebook/me/x"]\naddress = "a:1"\nadress = 1',
        '["notebook/me/x"]\naddress = "a:1"\nheaders = {"A B" = "x"}',
        '["notebook/me/x"]\naddress = "a:1"\nheaders = {A = "x\\r\\nB: y"}',
    ],
)
def test_an_invalid_target_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="here"):
        parse_targets(text, "here")
