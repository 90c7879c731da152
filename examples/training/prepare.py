"""Raw readings in, clean ones out: one unit, no gaps, no row twice."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

KINDS = ("gear", "piston", "screw")


def celsius(text: str) -> float:
    if text.endswith("F"):
        return (float(text[:-1]) - 32) * 5 / 9
    return float(text)


def clean(row: dict[str, str]) -> list[str]:
    return [
        row["load"],
        f"{celsius(row['temperature']):.1f}",
        row["vibration"],
        row["hours"],
        *("1" if row["kind"] == kind else "0" for kind in KINDS),
        "1" if row["failed"] == "yes" else "0",
    ]


def main(source: Path, target: Path) -> None:
    seen: set[tuple[str, ...]] = set()
    kept = dropped = 0
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open(newline="") as lines, target.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["load", "temperature", "vibration", "hours", *KINDS, "failed"])
        for row in csv.DictReader(lines):
            key = tuple(row.values())
            if key in seen or not all(key):
                dropped += 1
                continue
            seen.add(key)
            writer.writerow(clean(row))
            kept += 1
    print(f"prepare: kept {kept} rows, dropped {dropped}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
