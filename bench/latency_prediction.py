"""Predicting latencies that were not measured, on published matrices, beside Vivaldi and others.

    python bench/latency_prediction.py --data FOLDER [--seeds 3] [--only planetlab] [--json FILE]

The folder (or the variable CLEW_RTT_DATA) holds the matrices; they are not part of Clew:

- `planetlab490_median.npz` (`rtt_ms`) and `seattle99_688slices.npz` (`first`, `delta`, `unit_s`):
  NetLatency-Data, Zhu et al., IEEE/ACM ToN 25 (2017). Of Seattle, the median over time is taken;
- `ripeatlas_country_core.npz` (`rtt_ms`): means between countries from RIPE Atlas.

Of a pair with two directions the mean counts. Measured are 10 % of the pairs, or those of every
node with 32 random others. All errors are those of pairs that were *not* measured. "Added" is the
latency lost by placing: for each endpoint, of 20 random candidates that were not measured, the one
with the shortest prediction is taken, and its true latency compared with the best one's; a "hit"
takes the best. "Within" is the share of true latencies within the error that Clew gives; "again"
is the time of another fit, which begins with the coordinates of the first.

The second table begins with 5 % of the pairs of PlanetLab, of which 40 nodes are the locations. It
measures more pairs of a node and a location, those that Clew asks for or random ones, and places on
the node that is predicted or known to be the best of all. Every figure is the mean over the seeds.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")

import latency_peers
import numpy as np
from latency_peers import Flags, Matrix

from clew.placement.latency_estimates import CombinedEstimates, Estimates, MeasuredEstimates
from clew.placement.latency_table import Endpoint, LatencyTable, location, node
from clew.placement.prediction.measured_pairs import MeasuredPairs
from clew.placement.prediction.next_measurements import choose_measurements
from clew.placement.prediction.predictor import LatencyPredictor

FIRST_SEED = 11
CANDIDATES, DRAWS = 20, 20
TARGETS = {
    ("planetlab", "10 %"): "added 7 ms, error 0.055 and 0.25",
    ("planetlab", "32 neighbours"): "added 5.5 ms, error 0.055 and 0.25",
}
LOCATIONS, ASKED, ROUNDS = 40, 80, 5


class Figures(NamedTuple):
    median_error: float
    p90_error: float
    hits: float
    added_ms: float
    within: float
    seconds: float
    refit_seconds: float

    @classmethod
    def mean(cls, rounds: list["Figures"]) -> "Figures":
        return cls(*np.mean(rounds, axis=0).tolist())

    def row(self) -> str:
        formats = (".3f", ".3f", ".2f", ".1f", ".2f", ".2f", ".2f")
        return " | ".join(
            "" if np.isnan(figure) else format(figure, spec)
            for figure, spec in zip(self, formats, strict=True)
        )


def planetlab(folder: Path) -> Matrix:
    return symmetric(np.load(folder / "planetlab490_median.npz")["rtt_ms"])


def seattle(folder: Path) -> Matrix:
    file = np.load(folder / "seattle99_688slices.npz")
    changes = np.concatenate([file["first"][None], file["delta"]]).astype(np.int64)
    slices = np.cumsum(changes, axis=0) * float(file["unit_s"]) * 1000
    hidden = np.ma.masked_less_equal(slices, 0)
    return symmetric(np.ma.median(hidden, axis=0).filled(np.nan))


def countries(folder: Path) -> Matrix:
    return symmetric(np.load(folder / "ripeatlas_country_core.npz")["rtt_ms"])


def symmetric(matrix: Matrix) -> Matrix:
    both = np.stack([matrix, matrix.T]).astype(np.float64)
    known = np.isfinite(both) & (both > 0)
    sums = np.where(known, both, 0).sum(0)
    mean = np.where(known.any(0), sums / np.maximum(known.sum(0), 1), np.nan)
    np.fill_diagonal(mean, np.nan)
    return mean


def tenth_of_pairs(true: Matrix, random: np.random.Generator) -> Flags:
    chosen = np.triu(random.random(true.shape) < 0.1, 1)
    return (chosen | chosen.T) & np.isfinite(true)


def neighbours(true: Matrix, random: np.random.Generator) -> Flags:
    count = len(true)
    chosen = np.zeros(true.shape, dtype=bool)
    for at in range(count):
        chosen[at, random.choice(np.delete(np.arange(count), at), 32, replace=False)] = True
    return (chosen | chosen.T) & np.isfinite(true)


def fill_table(true: Matrix, measured: Flags, ends: list[Endpoint]) -> LatencyTable:
    table = LatencyTable()
    for a, b in np.argwhere(np.triu(measured, 1)).tolist():
        table.record(ends[a], ends[b], float(true[a, b]), at=0.0)
    return table


def measure_clew(true: Matrix, measured: Flags) -> Figures:
    ends = [node(str(at)) for at in range(len(true))]
    pairs = MeasuredPairs.of_table(fill_table(true, measured, ends), now=0.0)
    predictor, began = LatencyPredictor(), time.process_time()
    prediction = predictor.fit(pairs, ends)
    ended = time.process_time()
    predictor.fit(pairs, ends)
    refitted = time.process_time()
    predicted, errors = np.full(true.shape, np.nan), np.full(true.shape, np.nan)
    for at, end in enumerate(ends):
        for name, estimate in prediction.to_endpoint(end).items():
            predicted[at, int(name)], errors[at, int(name)] = estimate.ms, estimate.error_ms
    figures = compare(true, measured, predicted, ended - began)
    within = (np.abs(predicted - true) <= errors)[~measured & np.isfinite(true)]
    return figures._replace(within=float(within.mean()), refit_seconds=refitted - ended)


def compare(true: Matrix, measured: Flags, predicted: Matrix, seconds: float) -> Figures:
    """The figures of one predictor; those that only Clew has are left open."""
    unmeasured = ~measured & np.isfinite(true)
    if not np.isfinite(predicted[unmeasured]).all():
        sys.exit("a pair has no prediction: some endpoints are not connected by measurements")
    relative = np.abs(predicted / true - 1)[unmeasured]
    random = np.random.default_rng(0)
    added = []
    for at in range(len(true)):
        others = np.flatnonzero(unmeasured[at])
        for _ in range(DRAWS if len(others) >= CANDIDATES else 0):
            drawn = random.choice(others, CANDIDATES, replace=False)
            chosen = drawn[np.argmin(predicted[at, drawn])]
            added.append(true[at, chosen] - true[at, drawn].min())
    return Figures(
        float(np.median(relative)),
        float(np.quantile(relative, 0.9)),
        float(np.mean(np.array(added) <= 0)),
        float(np.mean(added)),
        np.nan,
        seconds,
        np.nan,
    )


def measure(true: Matrix, measured: Flags, seed: int) -> dict[str, Figures]:
    """Clew and its peers on the same measurements."""
    found = {"Clew": measure_clew(true, measured)}
    peers: dict[str, Callable[[Matrix, Flags, np.random.Generator], Matrix]] = {
        "Vivaldi, 8D and height": latency_peers.vivaldi,
        "factorisation of rank 10": latency_peers.factorisation,
        "random": latency_peers.random_choice,
    }
    for name, peer in peers.items():
        began = time.process_time()
        predicted = peer(true, measured, np.random.default_rng(seed))
        seconds = time.process_time() - began
        found[name] = compare(true, measured, predicted, seconds)
    return found


def lost_by_placing(true: Matrix, seed: int, *, asking: bool) -> list[float]:
    """Milliseconds lost on the best of all nodes: at first, and after each round of measuring."""
    random = np.random.default_rng(seed)
    chosen = set(random.choice(len(true), LOCATIONS, replace=False).tolist())
    ends = [(location if at in chosen else node)(str(at)) for at in range(len(true))]
    nodes = [end.name for end in ends if end.kind == "node"]
    locations = [end.name for end in ends if end.kind == "location"]
    table = fill_table(true, random.random(true.shape) < 0.05, ends)
    predictor, lost = LatencyPredictor(), []
    for _ in range(ROUNDS + 1):
        prediction = predictor.fit(MeasuredPairs.of_table(table, now=0.0))
        estimates = CombinedEstimates(MeasuredEstimates(table, now=0.0), prediction)
        lost.append(lost_now(true, estimates, nodes, locations))
        if asking:
            asked = choose_measurements(estimates, nodes=nodes, locations=locations, limit=ASKED)
            pairs = [(it.node, it.location) for it in asked]
        else:
            pairs = [(random.choice(nodes), random.choice(locations)) for _ in range(ASKED)]
        for a, b in pairs:
            table.record(node(str(a)), location(str(b)), float(true[int(a), int(b)]), at=0.0)
    return lost


def lost_now(true: Matrix, found: Estimates, nodes: list[str], locations: list[str]) -> float:
    lost = []
    for name in locations:
        estimates = found.to_location(name)
        best = min(true[int(it), int(name)] for it in nodes)
        lost.append(true[int(min(estimates, key=lambda it: estimates[it].ms)), int(name)] - best)
    return float(np.mean(lost))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=os.environ.get("CLEW_RTT_DATA"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", choices=["planetlab", "seattle", "countries"])
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if given.data is None:
        print("not measured: no matrices of latencies; name their folder with --data FOLDER")
        return
    networks = {"planetlab": planetlab, "seattle": seattle, "countries": countries}
    seeds = range(FIRST_SEED, FIRST_SEED + given.seeds)
    figures: dict[str, dict[str, Figures]] = {}
    print(
        "| measured | predictor | error: median | p90 | hits | added ms | within | CPU s | again |"
    )
    print("| --- " * 9 + "|")
    for network in [given.only] if given.only else networks:
        try:
            true = networks[network](given.data)
        except OSError as error:
            sys.exit(f"{network} is missing: {error}")
        for share, sample in (("10 %", tenth_of_pairs), ("32 neighbours", neighbours)):
            rounds = [
                measure(true, sample(true, np.random.default_rng(seed)), seed) for seed in seeds
            ]
            for name in rounds[0]:
                mean = Figures.mean([found[name] for found in rounds])
                figures.setdefault(f"{network}, {share}", {})[name] = mean
                print(f"| {network}, {share} | {name} | {mean.row()} |", flush=True)
            if (network, share) in TARGETS:
                print(f"| {network}, {share} | target: {TARGETS[network, share]} | | | | | | | |")
    if given.only in (None, "planetlab"):
        true = planetlab(given.data)
        counts = " | ".join(str(ASKED * at) for at in range(ROUNDS + 1))
        print(f"\n| ms lost after measuring more pairs | {counts} |")
        print("| --- " * (ROUNDS + 2) + "|")
        for name, asking in (("that Clew asks for", True), ("at random", False)):
            lost = np.mean([lost_by_placing(true, seed, asking=asking) for seed in seeds], axis=0)
            print(f"| {name} | " + " | ".join(f"{ms:.1f}" for ms in lost) + " |")
    if given.json:
        given.json.write_text(
            json.dumps({at: {k: v._asdict() for k, v in it.items()} for at, it in figures.items()})
        )


if __name__ == "__main__":
    main()
