import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.prov.package_urls import build_purl, describe_package, normalize_pypi_name, parse_purl

words = st.text(min_size=1, max_size=12).filter(lambda text: text.isprintable())


@given(st.sampled_from(["deb", "rpm", "pypi"]), words, words, words, words)
def test_a_package_url_comes_apart_as_it_was_put_together(
    manager: str, namespace: str, name: str, version: str, arch: str
) -> None:
    text = build_purl(manager, name, version, namespace=namespace, arch=arch)
    assert parse_purl(text) == (manager, namespace, name, version, {"arch": arch})
    assert text.isascii()


def test_versions_stay_readable() -> None:
    text = build_purl("deb", "libstdc++6", "1:2.36~rc1-9+deb12u1", namespace="debian", arch="amd64")
    assert text == "pkg:deb/debian/libstdc++6@1:2.36~rc1-9+deb12u1?arch=amd64"


@pytest.mark.parametrize("text", ["", "numpy", "pkg:", "pkg:pypi", "pkg:PyPI/x"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no package URL"):
        parse_purl(text)


def test_the_contracts_words() -> None:
    assert describe_package("pkg:deb/debian/libc6@2.36?arch=amd64", True) == {
        "manager": "deb",
        "name": "libc6",
        "version": "2.36",
        "requested": True,
        "arch": "amd64",
    }
    assert describe_package("pkg:rpm/fedora/x@1-2?epoch=3", None) == {
        "manager": "rpm",
        "name": "x",
        "version": "3:1-2",
        "requested": None,
    }
    url = "git+https://h/x.git@abc"
    assert (describe_package(build_purl("pypi", "x", "1", vcs_url=url), False) or {})["url"] == url
    assert describe_package("pkg:generic/python@3.11.7", None) is None


def test_names_are_compared_as_pypi_does() -> None:
    assert normalize_pypi_name("Ruamel.YAML__clib") == "ruamel-yaml-clib"


@pytest.mark.parametrize(
    "text",
    [
        "pkg:deb/debian/x%0ARUN%20y@1",
        "pkg:deb/debian/-o@1",
        "pkg:deb/debian/x@1%20y",
        "pkg:deb/debian/x@-1",
        "pkg:deb/debian/x@1?arch=a;b",
        "pkg:pypi/x@1%0A--pre",
        "pkg:pypi/x@1?download_url=http://h/%0A--pre",
    ],
)
def test_no_package_is_called_like_an_instruction(text: str) -> None:
    with pytest.raises(ValueError, match="no package URL"):
        describe_package(text, None)
