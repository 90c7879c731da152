"""How far a transfer is, where nobody watches: lines, and few of them."""

import pytest

from clew.cli import progress


def test_no_line_while_it_is_quick(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress("sending") as draw:
        draw(0, 0)
        draw(0, 2_000_000)
        draw(2_000_000, 2_000_000)
    assert capsys.readouterr() == ("", "")


def test_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_INTERVAL", -1.0)
    with progress.progress("sending") as draw:
        draw(500_000, 2_000_000)
    assert capsys.readouterr() == ("", "sending: 500.0 kB of 2.0 MB\n")
