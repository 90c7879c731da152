from pathlib import Path

import pytest

from clew.settings import load


@pytest.mark.parametrize("given", [{}, {"XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "cache"}])
def test_without_a_folder_that_is_the_same_everywhere_the_usual_ones_hold(
    given: dict[str, str],
) -> None:
    found = load(given)
    assert found.cache == Path.home() / ".cache/clew"
    assert found.state == Path.home() / ".local/state/clew"


def test_the_folders_of_a_user_are_as_they_are_named() -> None:
    found = load({"XDG_CACHE_HOME": "/c", "XDG_STATE_HOME": "/s"})
    assert (found.cache, found.owners) == (Path("/c/clew"), Path("/c/clew/owners"))
    assert found.state == Path("/s/clew")
