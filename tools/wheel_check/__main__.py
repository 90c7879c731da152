"""Check the wheels, and use the one for this machine in a container that has no compiler.

    python3 -m tools.wheel_check DIRECTORY

DIRECTORY holds a wheel for each architecture. Building the image of `Containerfile` is the check of
the one for this machine: each of its steps must succeed. `make test-aarch64` runs the other one.
"""

import sys
from pathlib import Path

from tools.cluster.images import build_without_archive
from tools.wheel_check.elf import check_wheels

IMAGE = "localhost/clew/wheel-check"


def main() -> None:
    folder = Path(sys.argv[1])
    check_wheels(folder)
    build_without_archive(IMAGE, Path(__file__).with_name("Containerfile"), folder)


if __name__ == "__main__":
    main()
