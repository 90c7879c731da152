"""Make `data/raw.csv`: a year of readings from pumps, as untidy as such files are.

It is checked in beside this script, which always makes the same bytes. One row in about
sixty lacks a value, some temperatures are in Fahrenheit, and some rows were sent twice.
"""

from __future__ import annotations

import csv
import math
import random
from datetime import date, timedelta
from pathlib import Path

ROWS = 2400
COLUMNS = ("day", "pump", "kind", "load", "temperature", "vibration", "hours", "failed")


def readings(seed: int = 20240229) -> list[list[str]]:
    chance = random.Random(seed)
    first = date(2024, 1, 1)
    pumps = [(f"P{n:02}", chance.choice(("gear", "piston", "screw"))) for n in range(1, 21)]
    hours = {name: chance.uniform(0, 2000) for name, _ in pumps}
    rows: list[list[str]] = []
    for n in range(ROWS):
        name, kind = pumps[n % len(pumps)]
        day = first + timedelta(days=3 * (n // len(pumps)))
        load = min(1.0, max(0.05, chance.gauss(0.6, 0.18)))
        hours[name] += 72 * load
        season = 8 * math.sin(2 * math.pi * (day.timetuple().tm_yday - 100) / 365)
        temperature = 40 + season + 30 * load + hours[name] / 250 + chance.gauss(0, 3)
        vibration = 1.2 + 1.5 * load**2 + hours[name] / 1500 + chance.gauss(0, 0.35)
        strain = 0.25 * (temperature - 64) + 3.0 * (vibration - 2.7) + (kind == "piston") * 0.6
        failed = chance.random() < 1 / (1 + math.exp(-strain))
        rows.append(
            [
                day.isoformat(),
                name,
                kind,
                f"{load:.2f}",
                f"{temperature * 9 / 5 + 32:.1f}F" if n % 41 == 7 else f"{temperature:.1f}",
                "" if chance.random() < 1 / 60 else f"{vibration:.2f}",
                f"{hours[name]:.0f}",
                "yes" if failed else "no",
            ]
        )
        if failed:
            hours[name] = 0.0  # repaired
        if chance.random() < 1 / 80:
            rows.append(rows[-1])  # sent twice
    return rows


def main() -> None:
    target = Path(__file__).with_name("data") / "raw.csv"
    with target.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(readings())


if __name__ == "__main__":
    main()
