"""What a Pod of a reproduction printed: bounded, and without the secrets that it was given."""

from clew.api.reproduction.preparation import RunOptions


def test_the_end_of_a_secret_with_several_lines_is_masked() -> None:
    key = "-----BEGIN-----\nfirst-line-of-it\nlast-line-of-it\n-----END-----\n"
    options = RunOptions({"/keys/id": key, "TOKEN": "short"})
    shown = options.mask(f"x short\n{key[30:]}".encode())
    assert "short" not in shown
    assert "last-line" not in shown
    assert shown.startswith("x ")
