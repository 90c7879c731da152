"""GET and PUT of 1 kB through the sidecar, beside the same requests without it, in the same run.

    python bench/s3_sidecar.py [--rounds 600] [--json FILE]

The object store is versitygw, the client a stock boto3 with one connection to each. Printed are
medians of single requests and their ratio: how much longer a request takes through the sidecar,
which writes its log with all fields meanwhile. `make build/s3-clients/.ready` provides the client.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.local.s3_sidecar import KEY, PYTHON, SECRET, s3_server, sidecar

MOST = 1.35
"""Of the time without the sidecar."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=600)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if not PYTHON.exists():
        raise SystemExit("the clients of S3 are not installed: make build/s3-clients/.ready")
    with tempfile.TemporaryDirectory() as place:
        measured = measure(Path(place), given.rounds)
    results = {}
    print(f"{'1 kB':6}{'direct':>10}{'sidecar':>10}{'ratio':>8}   at most {MOST}")
    for name, rounds in measured.items():
        direct, through = (statistics.median(times) * 1000 for times in zip(*rounds, strict=True))
        ratio = through / direct
        results[name] = {"direct_ms": direct, "sidecar_ms": through, "ratio": ratio}
        print(f"{name:6}{direct:8.2f}ms{through:8.2f}ms{ratio:8.2f}")
    if given.json:
        given.json.write_text(json.dumps(results, indent=1))
    return int(any(one["ratio"] > MOST for one in results.values()))


def measure(folder: Path, rounds: int) -> dict[str, list[list[float]]]:
    with (
        s3_server(folder / "server", keep_alive=True) as server,
        sidecar(folder / "log", server) as port,
    ):
        endpoints = [f"http://127.0.0.1:{one}" for one in (server, port)]
        program = Path(__file__).parent / "work" / "s3_requests.py"
        ran = subprocess.run(
            [PYTHON, program, str(rounds), KEY, SECRET, *endpoints],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found: dict[str, list[list[float]]] = json.loads(ran.stdout)
        return found


if __name__ == "__main__":
    sys.exit(main())
