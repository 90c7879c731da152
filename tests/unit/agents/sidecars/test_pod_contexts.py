"""What the agent knows of a Pod from its status."""

from tests.unit.agents.sidecars.sidecar_pods import container, pod

from clew.agents.sidecars.pod_contexts import read_context
from clew.prov.events import Gap


def test_what_is_not_redirected_is_a_gap() -> None:
    both = [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]
    found = read_context(pod(podIPs=both))
    assert found is not None
    (gap,) = (one for one in found.describe(found.containers[0]) if isinstance(one, Gap))
    assert gap.what == "traffic over IPv6"


def test_restarts_of_a_container_are_told_apart() -> None:
    ended = {"terminated": {
        "containerID": f"containerd://{'a' * 64}", "startedAt": "2026-11-19T04:00:00Z",
        "finishedAt": "2026-11-19T04:01:00Z",
    }}  # fmt: skip
    again = {
        **container("main", "c", running={"startedAt": "2026-11-19T04:02:00Z"}),
        "restartCount": 1,
        "lastState": ended,
    }
    found = read_context(pod(containerStatuses=[again]))
    assert found is not None
    first, second = found.containers
    assert (first.restart, second.restart, found.stores) == (0, 1, ("s3.example",))
    assert found.find_activity(first.started + 10**9).uid == first.uid
    assert found.find_activity(second.started + 10**9).uid == second.uid
    later = read_context(pod(), found)
    assert later is not None
    assert first.uid in {one.uid for one in later.containers}
