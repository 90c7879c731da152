"""Templates of origins: which are taken, and what each target gets."""

import pytest

from clew.errors import UsageError
from clew.server.proxy.app_origin import AppOrigin, check_template
from clew.server.proxy.targets import TargetKey

ASKED = {"scheme": "http", "headers": [(b"host", b"[::1]:8100")]}


def origin(template: str | None, name: str = "a", namespace: str = "b") -> str:
    return AppOrigin(8101, template).of(ASKED, TargetKey("notebook", namespace, name))


def test_without_a_template_it_is_the_same_host_on_the_other_port() -> None:
    assert origin(None) == "http://[::1]:8101"
    assert AppOrigin(8101).shared
    assert AppOrigin(8101, "https://apps.example.org").shared


def test_a_template_is_filled_in() -> None:
    assert origin("https://{name}.{namespace}.{kind}.x:8") == "https://a.b.notebook.x:8"


def test_no_two_targets_have_the_same_id() -> None:
    """Names joined by hyphens could be those of another target."""
    template = "https://{id}.x"
    names = [("a", "b-c"), ("a-b", "c"), ("b", "a-c"), ("a--b", "c"), ("a", "b--c")]
    found = {origin(template, *one) for one in names}
    assert len(found) == len(names)
    assert all(len(one.split("//")[1].split(".")[0]) == 32 for one in found)
    assert not AppOrigin(1, template).shared


@pytest.mark.parametrize("text", ["https://a:443", "http://a:80"])
def test_the_port_of_the_scheme_is_left_out(text: str) -> None:
    assert check_template(text) == text.rpartition(":")[0]


@pytest.mark.parametrize(
    "text", ["", "a", "https://", "https://a/", "https://a:0", "https://a:bad"]
)
def test_an_invalid_origin_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        check_template(text)
