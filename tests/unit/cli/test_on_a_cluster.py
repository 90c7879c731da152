"""What cannot be meant is refused before any cluster is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from clew.cli.operator import command as operator
from clew.cli.server import command as server
from clew.errors import UsageError


def test_two_places_for_targets_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "targets.toml"
    table.touch()
    ran = CliRunner().invoke(server, ["--on-cluster", "--targets", str(table)])
    assert isinstance(ran.exception, UsageError)
    assert "--targets" in ran.exception.message


def test_traffic_of_no_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLEW_SERVER", raising=False)
    ran = CliRunner().invoke(operator, ["--proxied"])
    assert isinstance(ran.exception, UsageError)
    assert "CLEW_SERVER" in ran.exception.hint


def test_what_no_namespace_can_be_called_is_refused() -> None:
    ran = CliRunner().invoke(operator, ["--namespace", "Team_1"])
    assert isinstance(ran.exception, UsageError)
    assert "Team_1" in ran.exception.message
