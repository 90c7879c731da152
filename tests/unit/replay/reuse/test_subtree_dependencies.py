"""Traversed directories, distinguished from directories that were examined for themselves."""

from clew.replay.reuse.subtree import Dependency
from clew.replay.reuse.subtree_dependencies import drop_traversals

DIRECTORY, FILE = "40755 4096 5", "100644 1 5"


def times(path: str, answer: str = DIRECTORY) -> Dependency:
    return Dependency(1, "times", path.encode(), answer, None)


def kinds(dependencies: list[Dependency]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for dependency in drop_traversals(dependencies):
        found.setdefault(dependency.path.decode(), []).append((dependency.kind, dependency.answer))
    return found


def test_the_way_to_a_file() -> None:
    found = kinds([times("/home"), times("/home/me"), times("/home/me/file", FILE)])
    step = [("present", "40755"), ("present", "plain")]
    assert found == {"/home": step, "/home/me": step, "/home/me/file": [("times", FILE)]}


def test_a_directory_that_was_looked_at_directly() -> None:
    """Not all above it was asked about, or nothing within."""
    alone = [times("/home/me"), times("/home/me/file", FILE)]
    assert kinds(alone)["/home/me"] == [("times", DIRECTORY)]
    last = [times("/home"), times("/home/me")]
    assert kinds(last)["/home/me"] == [("times", DIRECTORY)]


def test_a_link_on_the_way_leads_where_it_led() -> None:
    link = Dependency(1, "link", b"/home", "/data", None)
    assert kinds([link, times("/home"), times("/home/me")])["/home"] == [
        ("link", "/data"),
        ("present", "40755"),
    ]
