"""Write deploy/agents/latency/dashboard.json: a Grafana dashboard of latencies and placement.

The JSON is Grafana's classic model, which every version imports. It is written by this program, so
that panels are a few lines each; a test compares the two, and asks a Prometheus every query.
"""

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parents[1] / "deploy" / "agents" / "latency" / "dashboard.json"
SCHEMA_VERSION = 39
WIDTH, HEIGHT, COLUMNS = 8, 8, 3
SOURCE = {"type": "prometheus", "uid": "${source}"}
RATE = "[$__rate_interval]"


class Panel(NamedTuple):
    """`queries`: by the legend."""

    title: str
    description: str
    queries: dict[str, str]
    unit: str = "none"
    kind: str = "timeseries"


def quantile(share: float, histogram: str, *labels: str, window: str = RATE) -> str:
    by = ", ".join(("le", *labels))
    return f"histogram_quantile({share}, sum by ({by}) (rate({histogram}_bucket{window})))"


def rate(counter: str, *labels: str) -> str:
    return f"sum by ({', '.join(labels)}) (rate({counter}{RATE}))"


ROWS: dict[str, list[Panel]] = {
    "Measured latencies": [
        Panel(
            "Latency to each location",
            "Of the nearest node, and of half of the nodes.",
            {
                "{{location}}, nearest": "min by (location) (clew_latency_ms)",
                "{{location}}, median": "quantile by (location) (0.5, clew_latency_ms)",
            },
            unit="ms",
        ),
        Panel(
            "Latency of each node",
            "The last round of probes of each agent.",
            {"": "clew_latency_ms"},
            unit="ms",
            kind="table",
        ),
        Panel(
            "Deviation of probes",
            "How much the probes of one round differ, on the worst node.",
            {"{{location}}": "max by (location) (clew_latency_deviation_ms)"},
            unit="ms",
        ),
        Panel(
            "Probes",
            "By result. What is not ok did not answer.",
            {"{{kind}}, {{result}}": rate("clew_latency_probes_total", "kind", "result")},
            unit="ops",
        ),
        Panel(
            "Publications",
            "Writes of NodeLatency by agents, and by schedulers that ask for measurements.",
            {
                "agents, {{result}}": rate("clew_latency_publications_total", "result"),
                "scheduler, {{result}}": rate(
                    "clew_scheduler_measurement_requests_total", "result"
                ),
            },
            unit="ops",
        ),
        Panel(
            "What is missing",
            "Pairs that do not answer, reports that were refused, watches that failed.",
            {
                "unreachable pairs": "max(clew_scheduler_unreachable_pairs)",
                "refused reports": "sum(increase(clew_scheduler_refused_reports_total[1h]))",
                "failed watches, {{kind}}": (
                    "sum by (kind) (increase(clew_scheduler_watch_failures_total[1h]))"
                ),
            },
        ),
    ],
    "Predictions": [
        Panel(
            "Pairs of nodes and locations",
            "Measured pairs include pairs of nodes and labels.",
            {
                "measured": "max(clew_scheduler_latencies)",
                "predicted": "max(clew_scheduler_predicted_latencies)",
            },
        ),
        Panel(
            "Error of predictions",
            "Of what was predicted and then measured: the difference, as a part of the latency.",
            {
                "median": quantile(0.5, "clew_scheduler_prediction_relative_error", window="[1h]"),
                "90 %": quantile(0.9, "clew_scheduler_prediction_relative_error", window="[1h]"),
            },
            unit="percentunit",
        ),
        Panel(
            "Predicted against measured",
            "Above 1, predictions were too long on average.",
            {
                "ratio": (
                    'sum(clew_scheduler_compared_ms_total{source="predicted"}) '
                    '/ sum(clew_scheduler_compared_ms_total{source="measured"})'
                )
            },
        ),
        Panel(
            "Age",
            "Of the prediction, and of the oldest measurement that counts.",
            {
                "prediction": "max(clew_scheduler_prediction_age_seconds)",
                "oldest measurement": "max(clew_scheduler_measurement_age_seconds)",
            },
            unit="s",
        ),
        Panel(
            "Time to predict",
            "In a process of its own.",
            {"99 %": quantile(0.99, "clew_scheduler_fit_seconds", window="[1h]")},
            unit="s",
        ),
        Panel(
            "Predictions made",
            "By result.",
            {"{{result}}": "sum by (result) (increase(clew_scheduler_fits_total[1h]))"},
        ),
    ],
    "Decisions": [
        Panel(
            "Requests of kube-scheduler",
            "Neutral: the Pod asks for nothing, or nothing is known.",
            {"{{verb}}, {{answer}}": rate("clew_scheduler_requests_total", "verb", "answer")},
            unit="ops",
        ),
        Panel(
            "Time to answer",
            "Of 99 % of the requests.",
            {"{{verb}}": quantile(0.99, "clew_scheduler_request_seconds", "verb")},
            unit="s",
        ),
        Panel(
            "Decisions",
            "Pods for which a node was chosen.",
            {"{{location}}": "sum by (location) (increase(clew_scheduler_decisions_total[1h]))"},
        ),
        Panel(
            "Outcomes",
            "Pods that were bound to the chosen node, or to another one.",
            {"{{node}}": "sum by (node) (increase(clew_scheduler_placed_total[1h]))"},
        ),
        Panel(
            "Latency of placed Pods",
            "From the node to the location, when the Pod was bound.",
            {
                "{{location}}, median": quantile(
                    0.5, "clew_scheduler_placed_latency_ms", "location", window="[1h]"
                ),
                "{{location}}, 90 %": quantile(
                    0.9, "clew_scheduler_placed_latency_ms", "location", window="[1h]"
                ),
            },
            unit="ms",
        ),
        Panel(
            "Limits and losses",
            "Requests without a node within the limit, Pods in flight, reports not written.",
            {
                "over limit": "sum(increase(clew_scheduler_over_limit_total[1h]))",
                "in flight": "max(clew_scheduler_assumed_pods)",
                "reports lost": "sum(increase(clew_scheduler_reports_lost_total[1h]))",
            },
        ),
    ],
}


def make_dashboard() -> dict[str, Any]:
    return {
        "id": None,
        "uid": "clew-latencies",
        "title": "Clew: latencies and placement",
        "tags": ["clew"],
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "panels": make_panels(),
        "time": {"from": "now-6h", "to": "now"},
        "timepicker": {},
        "templating": {"list": [make_source_variable()]},
        "annotations": {"list": []},
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "links": [],
    }


def make_source_variable() -> dict[str, Any]:
    return {
        "name": "source",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "hide": 0,
        "multi": False,
        "includeAll": False,
        "current": {},
        "options": [],
        "regex": "",
    }


def make_panels() -> list[dict[str, Any]]:
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS.items():
        place = {"x": 0, "y": y, "w": WIDTH * COLUMNS, "h": 1}
        heading = {"type": "row", "title": title, "collapsed": False, "panels": []}
        panels.append({"id": len(panels) + 1, **heading, "gridPos": place})
        y += 1
        for at, panel in enumerate(row):
            place = {
                "x": at % COLUMNS * WIDTH,
                "y": y + at // COLUMNS * HEIGHT,
                "w": WIDTH,
                "h": HEIGHT,
            }
            panels.append({"id": len(panels) + 1, **make_panel(panel), "gridPos": place})
        y += -(-len(row) // COLUMNS) * HEIGHT
    return panels


def make_panel(panel: Panel) -> dict[str, Any]:
    table = panel.kind == "table"
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "options": {},
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "expr": query,
                "legendFormat": legend or "__auto",
                "instant": table,
                "range": not table,
                **({"format": "table"} if table else {}),
            }
            for number, (legend, query) in enumerate(panel.queries.items())
        ],
    }


def render() -> str:
    return json.dumps(make_dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(render())
    sys.stdout.write(f"{FILE}\n")
