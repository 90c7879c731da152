"""What the watches report changes the decisions."""

from tests.unit.kube.scheduler.requests import ignore, make_node, make_pod, refresh

from clew.kube.scheduler.scheduling_state import SchedulingState
from clew.placement.latency_estimates import Estimate

HOME = (("HOME", 1.0),)


def test_changes_count_after_a_refresh() -> None:
    state = SchedulingState(ignore)
    state.replace_nodes([make_node("a", HOME=1), make_node("b", HOME=2)])
    assert refresh(state)
    assert state.expect(HOME).mean_ms == {"a": 1, "b": 2}
    assert not refresh(state)
    state.see_node(make_node("a", HOME=3))
    state.forget_node("b")
    assert state.expect(HOME).mean_ms == {"a": 1, "b": 2}
    assert refresh(state)
    assert state.expect(HOME).mean_ms == {"a": 3}


def test_a_new_list_forgets_what_is_not_in_it() -> None:
    state = SchedulingState(ignore)
    state.replace_nodes([make_node("a", HOME=1), make_node("b", HOME=2)])
    state.replace_nodes([make_node("b", HOME=2)])
    refresh(state)
    assert state.expect(HOME).mean_ms == {"b": 2}
    assert state.count_nodes() == 1
    state.replace_pods([make_pod("p", "a"), make_pod("q", "b"), make_pod("pending")])
    state.occupancy.assume("r", "b", "", now=0.0)
    state.replace_pods([make_pod("q", "b")])
    assert [state.occupancy.pods_on(node) for node in "ab"] == [0, 2]


def test_combinations_of_locations_are_bounded() -> None:
    state = SchedulingState(ignore)
    state.replace_nodes([make_node("a", HOME=1)])
    refresh(state)
    for n in range(1000):
        state.expect((("HOME", 0.5), (f"L{n}", 0.5)))
    assert len(state._expected) <= 256


class Fixed:
    """Predictions that were made before."""

    def to_location(self, name: str) -> dict[str, Estimate]:
        return {"a": Estimate(10, 1, False), "b": Estimate(20, 2, False)} if name == "HOME" else {}


def test_predictions_count_where_nothing_is_measured_and_are_compared_once_it_is() -> None:
    compared: list[tuple[float, float]] = []
    state = SchedulingState(lambda *pair: compared.append(pair))
    state.replace_nodes([make_node("a", HOME=9), make_node("b")])
    state.predict(Fixed())
    assert refresh(state)
    assert state.expect(HOME).mean_ms == {"a": 9, "b": 22}
    assert state.expect(HOME).measured == {"a"}
    state.see_node(make_node("b", HOME=25))
    state.see_node(make_node("b", HOME=26))
    assert compared == [(25, 20)]
    refresh(state)
    assert state.expect(HOME).mean_ms == {"a": 9, "b": 26}


def test_a_decision_reads_the_earlier_latencies_until_they_are_renewed() -> None:
    state = SchedulingState(ignore)
    state.replace_nodes([make_node("a", HOME=1)])
    refresh(state)
    before = state.expect(HOME)
    state.see_node(make_node("a", HOME=2))
    assert state.refresh(0.0)
    assert state.expect(HOME) is before
    assert state.count_latencies() == 0
    assert state.renew()
    assert state.expect(HOME).mean_ms == {"a": 2}
    assert not state.renew()
    assert state.count_latencies() == 1
