"""What is said of the peers of recorded Pods."""

import socket

import pytest
from tests.pod_records import HandwrittenRecord

from clew.api.reproduction.peer_checks import check_peers
from clew.api.reproduction.plan_report import plan_reproduction
from clew.api.reproduction.preparation import RunOptions
from clew.documents.ids import Locator
from clew.prov.cluster.ancestry_types import Peer


def check(*places: str, network: bool) -> dict[str, str]:
    """What is said of each place to which a Pod talked."""
    record = HandwrittenRecord("busy", "sha256:0")
    peers = [Peer(locator=Locator(place)) for place in places]
    record.pod("ask", "true", writes={"a": b""}, peers=peers)
    stages = plan_reproduction(record, "target").stages.stages
    found = check_peers(stages, RunOptions({}, network=network), find_change=lambda _: "it is gone")
    return {one.what: one.why.removeprefix("Pod ask talked to it: ") for one in found}


def test_other_hosts_are_asked_for_a_connection_if_the_network_is_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as there, socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # and does not listen
        up = f"http://127.0.0.1:{there.getsockname()[1]}"
        down = f"https://127.0.0.1:{free.getsockname()[1]}"
        wrong = "http://127.0.0.1:99999"
        assert check(up, down, wrong, "service://ml/scores", "ip://192.0.2.1", network=True) == {
            up: "its answers are not recorded",
            down: "it cannot be reached from this machine",
            wrong: "it cannot be reached from this machine",
            "service://ml/scores": "it is gone",
            "ip://192.0.2.1": "its answers are not recorded",
        }
        there.setblocking(False)
        there.accept()[0].close()
        no_network = "; the Pod has no network here: --network"
        assert check(up, down, network=False) == {
            up: f"its answers are not recorded{no_network}",
            down: f"its answers are not recorded{no_network}",
        }
        with pytest.raises(BlockingIOError):
            there.accept()
