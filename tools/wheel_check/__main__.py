"""Install the built wheel in a container that has no compiler, and use it there.

    python3 -m tools.wheel_check DIRECTORY

DIRECTORY holds the wheel. Building the image of `Containerfile` is the check: each of its steps
must succeed.
"""

import sys
from pathlib import Path

from tools.cluster.images import build_without_archive

IMAGE = "localhost/clew/wheel-check"


def main() -> None:
    build_without_archive(IMAGE, Path(__file__).with_name("Containerfile"), Path(sys.argv[1]))


if __name__ == "__main__":
    main()
