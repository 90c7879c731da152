"""Pushing a second execution that shares 95 % of its content with the first, beside restic.

    python bench/push_size.py [--megabytes 200] [--folder DIR]

An execution reads a folder: half of it random bytes in files of a megabyte, half small text
files. Then a twentieth of the bytes of either kind are replaced, and it runs again. Printed are the
bytes that each push put into an empty remote folder, and the second as a share of the first. restic
backs the same folder up to a repository in the same two states; it stores the folder alone, where
Clew also sends the program that read it, its libraries, and the record.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LARGE, SMALL = 1 << 20, 6_000
MUST = 0.07
READ = """
import os
for folder, _, names in os.walk("data"):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            file.read()
"""


def make(root: Path, size: int) -> None:
    root.mkdir()
    for number in range(size // 2 // LARGE):
        large(root, number, seed=0)
    for number in range(size // 2 // SMALL):
        small(root, number, seed=0)


def change(root: Path, size: int) -> None:
    """Another twentieth."""
    for number in range(0, size // 2 // LARGE, 20):
        large(root, number, seed=1)
    for number in range(0, size // 2 // SMALL, 20):
        small(root, number, seed=1)


def large(root: Path, number: int, seed: int) -> None:
    (root / f"{number}.bin").write_bytes(random.Random(f"{seed} {number}").randbytes(LARGE))


def small(root: Path, number: int, seed: int) -> None:
    """Words, as in sources: compresses to about a third."""
    chance = random.Random(f"{seed} {number}")
    words = [f"name{chance.randrange(3000)}" for _ in range(SMALL // 9)]
    folder = root / f"{number % 100:02d}"
    folder.mkdir(exist_ok=True)
    (folder / f"{number}.txt").write_text(" ".join(words)[:SMALL])


def run(*command: str, cwd: Path, **variables: str) -> float:
    began = time.perf_counter()
    ran = subprocess.run(
        command, cwd=cwd, env={**os.environ, **variables}, capture_output=True, text=True
    )
    if ran.returncode:
        sys.exit(f"{command[0]} failed: {ran.stderr[-2000:]}")
    return time.perf_counter() - began


def weight(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def clew(home: Path, remote: Path) -> float:
    call = (sys.executable, "-m", "clew")
    run(*call, "init", cwd=home)
    run(*call, "exec", "--", sys.executable, "-c", READ, cwd=home)
    return run(*call, "push", str(remote), cwd=home)


def restic(home: Path, repository: Path) -> float:
    given = {"RESTIC_PASSWORD": "bench", "RESTIC_CACHE_DIR": str(home / "cache")}
    call = ("restic", "-q", "-r", str(repository))
    if not repository.exists():
        run(*call, "init", cwd=home, **given)
    return run(*call, "backup", "data", cwd=home, **given)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder otherwise")
    options = parser.parse_args()
    size = options.megabytes * 1_000_000
    tools = {"clew": clew} | ({"restic": restic} if shutil.which("restic") else {})
    with tempfile.TemporaryDirectory(prefix="clew-bench-", dir=options.folder) as name:
        home = Path(name)
        make(home / "data", size)
        print(f"{weight(home / 'data') / 1e6:.0f} MB, of which 5 % change\n")
        costs: dict[str, list[tuple[int, float]]] = {tool: [] for tool in tools}
        for turn in range(2):
            if turn:
                change(home / "data", size)
            for tool, send in tools.items():
                place = home / f"{tool}-remote"
                before = weight(place) if place.exists() else 0
                seconds = send(home, place)
                costs[tool].append((weight(place) - before, seconds))
    print("| | first MB | s | second MB | s | second / first |")
    print("| --- | --- | --- | --- | --- | --- |")
    for tool, ((first, took), (second, again)) in costs.items():
        cells = f"{first / 1e6:.1f} | {took:.1f} | {second / 1e6:.2f} | {again:.1f}"
        print(f"| {tool} | {cells} | {second / first:.2%} |")
    (first, _), (second, _) = costs["clew"]
    verdict = "ok" if second / first <= MUST else "MISSED"
    print(f"\nsecond push / first: {second / first:.2%} (must: {MUST:.0%}) {verdict}")


if __name__ == "__main__":
    main()
