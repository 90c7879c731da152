"""What is said of children is said of their parent, once."""

from dataclasses import replace

from tests.unit.kube.sample_resources import cluster_state, event, notebook

from clew.kube.controller.event_relay import find_unrelayed_events
from clew.kube.controller.model import Event
from clew.kube.objects import Json

SAID = event("FailedCreate", "no room")


def as_seen(made: Json) -> Event:
    return replace(SAID, name=made["metadata"]["name"], count=made["count"])


def test_an_event_is_said_again_as_upstream_says_it() -> None:
    [made] = find_unrelayed_events(notebook(), cluster_state(events=[SAID]), ())
    assert made["message"] == "Reissued from statefulset/first: no room"
    assert (made["type"], made["reason"]) == ("Warning", "FailedCreate")
    assert made["source"] == {"component": "notebook-controller"}
    assert made["involvedObject"]["kind"] == "Notebook"
    assert made["involvedObject"]["uid"] == "uid-first"


def test_it_is_said_once() -> None:
    [made] = find_unrelayed_events(notebook(), cluster_state(events=[SAID]), ())
    assert (
        list(find_unrelayed_events(notebook(), cluster_state(events=[SAID]), [as_seen(made)])) == []
    )


def test_when_it_happens_again_the_same_event_counts_on() -> None:
    [made] = find_unrelayed_events(notebook(), cluster_state(events=[SAID]), ())
    again = cluster_state(events=[replace(SAID, count=4)])
    [more] = find_unrelayed_events(notebook(), again, [as_seen(made)])
    assert more["metadata"]["name"] == made["metadata"]["name"]
    assert more["count"] == 4


def test_a_notebook_made_anew_has_its_own() -> None:
    [made] = find_unrelayed_events(notebook(), cluster_state(events=[SAID]), ())
    other = notebook()
    other["metadata"]["uid"] = "anew"
    [more] = find_unrelayed_events(other, cluster_state(events=[SAID]), ())
    assert more["metadata"]["name"] != made["metadata"]["name"]
