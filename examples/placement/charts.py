"""Print what `run.sh` measured, and draw it: `charts.py RESULTS`.

RESULTS has a directory for each kind of training, with one for each place. The charts are
response-time.svg and training-time.svg beside them.
"""

import json
import sys
from html import escape
from pathlib import Path
from typing import NamedTuple

PUBLISHED = {"light": 0.07478, "heavy": 0.02578}
"""The errors (RMSE) that the thesis found with other preparations of the trips."""
COLOURS = {"edge": "#1f6feb", "cloud": "#d1570b", "split": "#1a7f37"}
MEANINGS = {
    "edge": "one process at the edge",
    "cloud": "one process in the cloud",
    "split": "steps, placed apart",
}
WIDTH, HEIGHT = 460, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 64, 28, 40, 46
STEPS = (1, 2, 2.5, 5, 10)


class Measured(NamedTuple):
    """What one place needed."""

    model: dict
    seconds: dict[int, float]
    """The response time by the number of predictions."""
    rtt_ms: float
    delayed_packets: int
    nodes: dict[str, str]
    """The node of each Pod."""
    reasons: list[str]


def read(place):
    found = {}
    for line in (place / "responses.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "predictions" in row:
            found.setdefault("seconds", {})[row["predictions"]] = row["seconds"]
        else:
            found |= row
    pods = dict(line.split() for line in (place / "nodes.txt").read_text().splitlines())
    return Measured(
        json.loads((place / "training.json").read_text()),
        found["seconds"],
        found["rtt_ms"],
        found["delayed_packets"],
        pods,
        (place / "reasons.txt").read_text().splitlines(),
    )


def print_tables(results):
    for training, places in results.items():
        model = places["split"].model
        print(f"{training} training: {model['iterations']} iterations at {model['learning_rate']}")
        row = "{:<28}" + "{:>12}" * len(places)
        print(row.format("", *places))
        print(row.format("training, s", *(f"{it.model['seconds']:.2f}" for it in places.values())))
        print(row.format("RMSE", *(f"{it.model['rmse']:.5f}" for it in places.values())))
        print(row.format("round trip, ms", *(f"{it.rtt_ms:.2f}" for it in places.values())))
        for count in places["edge"].seconds:
            times = (f"{1000 * it.seconds[count]:.1f}" for it in places.values())
            print(row.format(f"{count} predictions, ms", *times))
        print(row.format("delayed packets", *(it.delayed_packets for it in places.values())))
        for place, it in places.items():
            where = ", ".join(f"{pod} on {node}" for pod, node in it.nodes.items())
            print(f"{place}: {where}", *it.reasons, sep="\n    ")
        print(f"published RMSE: {PUBLISHED[training]}\n")


def choose_step(most):
    """The distance of about five lines of a grid."""
    power = 10.0 ** (len(str(int(most / 5))) - 1) if most >= 5 else 1.0
    while most / 5 < power:
        power /= 10
    return next(power * step for step in STEPS if power * step >= most / 5)


def text(x, y, words, **style):
    about = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in style.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" {about}>{escape(words)}</text>'


class Panel:
    """One chart, with its own axes."""

    def __init__(self, number, title, across, most):
        self.left = number * WIDTH + LEFT
        self.most = most
        self.parts = [text(self.left, 22, title, font_size=14, font_weight="bold")]
        middle = self.left + self.width / 2
        self.parts.append(text(middle, HEIGHT - 8, across, text_anchor="middle"))
        step = choose_step(most)
        for line in range(int(most / step) + 1):
            y = self.y(line * step)
            grid = f'<path d="M{self.left} {y:.1f}h{self.width}" stroke="#d0d7de"/>'
            words = f"{line * step:g} s" if line else "0"
            self.parts += [grid, text(self.left - 6, y + 4, words, text_anchor="end")]

    width = WIDTH - LEFT - RIGHT
    height = HEIGHT - TOP - BOTTOM

    def y(self, value):
        return TOP + self.height * (1 - value / self.most)


def draw_responses(number, training, places):
    """Response time over the number of predictions."""
    most = 1.05 * max(max(it.seconds.values()) for it in places.values())
    panel = Panel(number, f"{training} training", "predictions in a request", most)
    largest = max(places["edge"].seconds)

    def x(count):
        return panel.left + panel.width * count / largest

    step = choose_step(largest)
    for line in range(int(largest / step) + 1):
        words = f"{line * step:,.0f}"
        panel.parts.append(text(x(line * step), HEIGHT - 28, words, text_anchor="middle"))
    for place, it in places.items():
        points = [(x(count), panel.y(seconds)) for count, seconds in it.seconds.items()]
        panel.parts.append(draw_line(points, COLOURS[place], dashed=place == "split"))
    return panel.parts


def draw_line(points, colour, *, dashed):
    line = " ".join(f"{across:.1f},{up:.1f}" for across, up in points)
    dashes = ' stroke-dasharray="6 4"' if dashed else ""
    drawn = [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>']
    drawn += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    return "\n".join(drawn)


def draw_training(number, training, places):
    """Training time at each place."""
    most = 1.15 * max(it.model["seconds"] for it in places.values())
    across = f"{places['split'].model['iterations']:,} iterations"
    panel = Panel(number, f"{training} training", across, most)
    room = panel.width / len(places)
    for column, (place, it) in enumerate(places.items()):
        seconds, left = it.model["seconds"], panel.left + (column + 0.2) * room
        up = panel.y(seconds)
        box = f'x="{left:.1f}" y="{up:.1f}" width="{0.6 * room:.1f}" height="{panel.y(0) - up:.1f}"'
        panel.parts += [
            f'<rect {box} fill="{COLOURS[place]}"/>',
            text(left + 0.3 * room, up - 5, f"{seconds:.1f} s", text_anchor="middle"),
            text(left + 0.3 * room, HEIGHT - 28, place, text_anchor="middle"),
        ]
    return panel.parts


def draw(file, results, draw_panel):
    parts = []
    for number, (training, places) in enumerate(results.items()):
        parts += draw_panel(number, training, places)
    for number, (place, meaning) in enumerate(MEANINGS.items()):
        x, y = LEFT + 190 * number, HEIGHT + 14
        parts.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{COLOURS[place]}"/>')
        parts.append(text(x + 16, y, meaning))
    width, height = max(WIDTH * len(results), 640), HEIGHT + 26
    size = f'width="{width}" height="{height}"'
    style = 'font-family="sans-serif" font-size="12" fill="#1f2328"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}" {style}>'
    ground = f'<rect {size} fill="#ffffff"/>'
    file.write_text("\n".join([head, ground, *parts, "</svg>\n"]))


def main(place):
    results = {
        training: {where: read(place / training / where) for where in COLOURS}
        for training in PUBLISHED
        if (place / training).exists()
    }
    print_tables(results)
    draw(place / "response-time.svg", results, draw_responses)
    draw(place / "training-time.svg", results, draw_training)


main(Path(sys.argv[1]))
