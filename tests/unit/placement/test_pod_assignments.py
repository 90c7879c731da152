"""Where Pods are, and where they will be."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from clew.placement.pod_assignments import ASSUMED_SECONDS, Occupancy

steps = st.lists(
    st.tuples(
        st.sampled_from(["bind", "assume", "withdraw", "remove", "wait"]),
        st.sampled_from("pqr"),
        st.sampled_from(["a", "b"]),
    )
)


@given(steps)
def test_counts_are_those_of_the_pods(steps: list[tuple[str, str, str]]) -> None:
    owners = {"p": "set", "q": "set", "r": ""}
    occupancy = Occupancy()
    bound: dict[str, str] = {}
    assumed: dict[str, tuple[str, float]] = {}
    now = 0.0
    for what, uid, node in steps:
        now += 1
        if what == "bind":
            occupancy.bind(uid, node, owners[uid])
            bound[uid] = node
            assumed.pop(uid, None)
        elif what == "assume":
            occupancy.assume(uid, node, owners[uid], now=now)
            bound.pop(uid, None)
            assumed[uid] = node, now + ASSUMED_SECONDS
        elif what == "withdraw":
            occupancy.withdraw(uid)
            assumed.pop(uid, None)
        elif what == "remove":
            occupancy.remove(uid)
            bound.pop(uid, None)
            assumed.pop(uid, None)
        else:
            now += ASSUMED_SECONDS / 2
            occupancy.expire(now)
            assumed = {uid: place for uid, place in assumed.items() if place[1] > now}
        places = bound | {uid: node for uid, (node, _) in assumed.items()}
        assert [occupancy.pods_on(n) for n in "ab"] == [
            list(places.values()).count(n) for n in "ab"
        ]
        replicas = Counter(node for uid, node in places.items() if owners[uid])
        assert occupancy.replicas("set") == replicas
        assert not occupancy.replicas("")
        assert occupancy.bound_uids() == bound.keys()
        assert occupancy.assumed_count() == len(assumed)
