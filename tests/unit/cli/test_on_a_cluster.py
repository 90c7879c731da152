"""What the programs of a cluster are told: each setting arrives, and what cannot be meant is
refused before any cluster is asked."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from clew.cli.commands.operator import command as operator
from clew.cli.commands.operator import parse_options
from clew.cli.commands.scheduler import command as scheduler
from clew.cli.commands.server import command as server
from clew.errors import Unavailable, UsageError
from clew.kube.controller.options import GATEWAY, Culling, Istio, Options

OPERATOR = Path(__file__).parents[3] / "deploy" / "operator" / "kustomization.yaml"
POD = {"containers": [{"name": "other", "image": "example.org/other"}]}


def test_two_places_for_targets_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "targets.toml"
    table.touch()
    ran = CliRunner().invoke(server, ["--on-cluster", "--targets", str(table)])
    assert isinstance(ran.exception, UsageError)
    assert "--targets" in ran.exception.message


def test_a_namespace_without_a_cluster_is_refused() -> None:
    ran = CliRunner().invoke(server, ["--namespace", "research"])
    assert isinstance(ran.exception, UsageError)
    assert "--on-cluster" in ran.exception.message


def test_a_scheduler_that_anybody_could_ask_is_refused() -> None:
    ran = CliRunner().invoke(scheduler, ["--listen", "0.0.0.0:8888"])
    assert isinstance(ran.exception, UsageError)
    assert "--client-ca" in ran.exception.message


def test_a_scheduler_without_a_cluster_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    ran = CliRunner().invoke(scheduler, ["--listen", "127.0.0.1:0"])
    assert isinstance(ran.exception, Unavailable)
    assert "KUBECONFIG" in ran.exception.hint


def test_traffic_of_no_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLEW_SERVER", raising=False)
    ran = CliRunner().invoke(operator, ["--proxied"])
    assert isinstance(ran.exception, UsageError)
    assert "CLEW_SERVER" in ran.exception.hint


def test_what_no_namespace_can_be_called_is_refused() -> None:
    ran = CliRunner().invoke(operator, ["--namespace", "Team_1"])
    assert isinstance(ran.exception, UsageError)
    assert "Team_1" in ran.exception.message


@pytest.mark.parametrize("peer", ["No_Name", "a/b", "a/=b", "10.0.0.1/8", "*"])
def test_an_invalid_address_of_a_peer_is_refused(peer: str) -> None:
    ran = CliRunner().invoke(operator, ["--allow-from", peer])
    assert isinstance(ran.exception, UsageError)
    assert "--allow-from" in ran.exception.message


def told(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Options:
    """What an operator with these variables goes by."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with operator.make_context("operator", []) as context:
        return parse_options(context.params)


def installed() -> dict[str, str]:
    """The variables that deploy/ gives it."""
    [generated] = yaml.safe_load(OPERATOR.read_text())["configMapGenerator"]
    return dict(each.split("=", 1) for each in generated["literals"])


def test_what_is_installed_is_what_it_does_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    by_itself = told(monkeypatch)
    assert told(monkeypatch, **installed()) == by_itself


@pytest.mark.parametrize(
    ("variable", "value", "change"),
    [
        ("USE_ISTIO", "true", {"istio": Istio(), "allow_from": (GATEWAY,)}),
        ("ALLOW_FROM", "a/b=c 10.0.0.0/8", {"allow_from": ("a/b=c", "10.0.0.0/8")}),
        ("CLUSTER_DOMAIN", "example.org", {"cluster_domain": "example.org"}),
        ("ADD_FSGROUP", "false", {"fs_group": False}),
        ("TENSORBOARD_IMAGE", "example.org/board:1", {"tensorboard_image": "example.org/board:1"}),
        ("RWO_PVC_SCHEDULING", "False", {"rwo_scheduling": False}),
        ("VOLUME_VIEWER_IMAGE", "example.org/clew:1", {"viewer_image": "example.org/clew:1"}),
        ("DEFAULT_POD_SPEC_PATH", "pod.yaml", {"viewer_pod": POD}),
        ("CULL_IDLE_TIME", "60", {"culling": Culling(idle=timedelta(hours=1))}),
        ("IDLE_TIME", "60", {"culling": Culling(idle=timedelta(hours=1))}),
        ("IDLENESS_CHECK_PERIOD", "5", {"culling": Culling(period=timedelta(minutes=5))}),
        ("CULLING_CHECK_PERIOD", "5", {"culling": Culling(period=timedelta(minutes=5))}),
        ("DEV", "true", {"culling": Culling(through_api=True)}),
        ("REMOVE_REPRODUCTIONS", "true", {"remove_reproductions": True}),
        ("PROMETHEUS_URL", "http://seen", {"culling": Culling(prometheus="http://seen")}),
    ],
)
def test_a_variable_set_on_what_is_installed_arrives(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    variable: str,
    value: str,
    change: dict[str, Any],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pod.yaml").write_text(yaml.safe_dump(POD))
    before = told(monkeypatch, **{**installed(), "ENABLE_CULLING": "true"})
    assert before.culling == Culling()
    assert told(monkeypatch, **{variable: value}) == replace(before, **change)


def test_istio_s_gateway_and_host_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"USE_ISTIO": "true", "ISTIO_GATEWAY": "a/b", "ISTIO_HOST": "example.org"}
    assert told(monkeypatch, **given).istio == Istio("a/b", "example.org")
