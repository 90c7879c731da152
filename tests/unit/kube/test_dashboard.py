"""The Grafana dashboard: its structure, and that it is what the program writes.

tests/cluster/test_measured_latencies.py asks a real Prometheus its queries."""

import json
import runpy
from itertools import combinations
from pathlib import Path

from clew.agents.latency.metrics import Metrics

ROOT = Path(__file__).parents[3]
WRITTEN = ROOT / "deploy" / "agents" / "latency" / "dashboard.json"
DASHBOARD = json.loads(WRITTEN.read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def test_it_is_what_the_program_writes() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "dashboard.py"))["render"]()
    assert made == WRITTEN.read_text()


def test_panels_have_what_grafana_needs_and_do_not_overlap() -> None:
    assert DASHBOARD["schemaVersion"] >= 36
    assert 8 <= len(DASHBOARD["uid"]) <= 40
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    (variable,) = DASHBOARD["templating"]["list"]
    for panel in PANELS:
        assert panel["title"]
        assert panel["type"] in ("timeseries", "table")
        assert panel["datasource"]["uid"] == f"${{{variable['name']}}}"
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for a, b in combinations(places, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        below = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert beside or below


def test_every_metric_of_the_agent_is_shown() -> None:
    shown = " ".join(target["expr"] for panel in PANELS for target in panel["targets"])
    names = {metric.name for metric in Metrics().registry.collect()}
    assert {name for name in names if name not in shown} == {"clew_latency_targets"}
