"""Storing a mixed tree, beside restic and borg on the same tree in the same run.

    python bench/store_speed.py [--rounds 3] [--folder DIR] [--large GB]

The tree: random bytes, a large CSV, 20,000 small source files (about 1 GB). Each tool stores it
into a new repository, stores it again unchanged, and again after a byte was inserted at the front
and 1 % edited in the middle of the random file. Rounds alternate between the tools, so that noise
on the machine meets all alike; medians are printed, with ratios to Clew. `--large` stores one file
of that many GB and prints the peak memory. Everything is warm: the tree was just written, so disks
matter only for writing.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

RANDOM, CSV, SOURCES = 500 << 20, 220 << 20, 20_000
STEPS = ("first", "unchanged", "edited")

CLEW = """
import os, sys, pathlib
from clew.store import Store
store = Store(pathlib.Path(sys.argv[1]))
paths = (os.path.join(top, name) for top, _, names in os.walk(sys.argv[2]) for name in names)
store.put_files([os.fsencode(path) for path in paths])
store.close()
"""


class Cost(NamedTuple):
    wall: float
    cpu: float
    stored: int
    memory: int


# -- the tree


def make_tree(root: Path) -> None:
    source = random.Random(7)
    data = root / "data"
    data.mkdir(parents=True)
    with open(data / "random.bin", "wb") as file:
        for _ in range(RANDOM >> 20):
            file.write(source.randbytes(1 << 20))
    with open(data / "table.csv", "w") as table:
        table.write("id,time,sensor,value,error,label\n")
        row = 0
        while table.tell() < CSV:
            table.writelines(
                f"{i},2024-03-{i % 28 + 1:02d}T{i % 24:02d}:{i % 60:02d}:00Z,"
                f"sensor-{source.randrange(40)},{source.gauss(20, 5):.4f},{source.random():.3f},"
                f"{'abc'[i % 3]}\n"
                for i in range(row, row + 10_000)
            )
            row += 10_000
    make_sources(root / "src")


def make_sources(root: Path) -> None:
    """Real source files of this Python's library; when they run out, each again but different."""
    library = Path(os.__file__).parent
    found = sorted(p for p in library.rglob("*.py") if 200 < p.stat().st_size < 40_000)
    for i in range(SOURCES):
        variant, which = divmod(i, len(found))
        folder = root / f"v{variant}" / f"{which // 100:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = found[which].read_bytes().splitlines(keepends=True)
        at = (variant * 37) % (len(lines) + 1)
        note = b"# variant %d of module %d\n" % (variant, which)
        (folder / f"{which}_{found[which].name}").write_bytes(
            b"".join([note, *lines[at:], *lines[:at]])
        )


def edit(path: Path, original: Path) -> None:
    """A byte more at the front, 1 % other bytes in the middle."""
    size = original.stat().st_size
    with open(original, "rb") as before, open(path, "wb") as after:
        after.write(b"!")
        shutil.copyfileobj(before, after, 1 << 20)
        after.seek(size // 2)
        after.write(random.Random(8).randbytes(size // 100))


# -- running


def run(command: list[str], env: dict[str, str]) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds, peak memory in bytes."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        command, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} failed: {errors.decode()[-2000:]}")
    cpu = usage.ru_utime + usage.ru_stime
    return time.perf_counter() - begin, cpu, usage.ru_maxrss * 1024


def weight(folder: Path) -> int:
    return sum(p.stat().st_blocks * 512 for p in folder.rglob("*") if p.is_file())


class Tool(NamedTuple):
    name: str
    prepare: list[str]
    store: list[str]
    env: dict[str, str]


def tools(home: Path, tree: Path) -> list[Tool]:
    repo = home / "repo"
    restic = {"RESTIC_PASSWORD": "bench", "RESTIC_CACHE_DIR": str(home / "cache")}
    borg = {
        "BORG_BASE_DIR": str(home / "cache"),
        "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
    }
    source = {"PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    found = [Tool("clew", [], [sys.executable, "-c", CLEW, str(repo), str(tree)], source)]
    if shutil.which("restic"):
        call = ["restic", "-q", "-r", str(repo)]
        found.append(Tool("restic", [*call, "init"], [*call, "backup", str(tree)], restic))
    if shutil.which("borg"):
        for level in ("lz4", "zstd,3"):
            create = ["borg", "create", "-C", level, f"{repo}::{{now:%s%f}}", str(tree)]
            found.append(
                Tool(f"borg {level}", ["borg", "init", "-e", "none", str(repo)], create, borg)
            )
    return found


def one_round(home: Path, tree: Path, number: int) -> dict[str, dict[str, Cost]]:
    costs: dict[str, dict[str, Cost]] = {}
    found = tools(home, tree)
    target, original = tree / "data" / "random.bin", home / "original"
    shift = number % len(found)
    for tool in found[shift:] + found[:shift]:
        shutil.rmtree(home / "repo", ignore_errors=True)
        shutil.rmtree(home / "cache", ignore_errors=True)
        os.sync()
        if tool.prepare:
            run(tool.prepare, tool.env)
        costs[tool.name] = {}
        stored = weight(home / "repo") if (home / "repo").exists() else 0
        for step in STEPS:
            if step == "edited":
                edit(target, original)
            wall, cpu, memory = run(tool.store, tool.env)
            after = weight(home / "repo")
            costs[tool.name][step] = Cost(wall, cpu, after - stored, memory)
            stored = after
        shutil.copyfile(original, target)
        time.sleep(2.5)  # files changed just now are read again by careful tools: let them grow old
    return costs


def report(rounds: list[dict[str, dict[str, Cost]]]) -> None:
    def median(name: str, step: str, field: str) -> float:
        return statistics.median(getattr(r[name][step], field) for r in rounds)

    names = list(rounds[0])
    names.sort(key=lambda name: name != "clew")
    heads = "".join(f"{head:>9}" for head in ("wall s", "CPU s", "MB", "peak MB"))
    print(f"{'':12}{'step':>11}{heads}   wall, CPU, MB / Clew's")
    for name in names:
        for step in STEPS:
            values = {f: median(name, step, f) for f in Cost._fields}
            own = {f: median("clew", step, f) for f in Cost._fields}
            ratios = "  ".join(
                f"{values[f] / own[f]:5.2f}" if own[f] > 0 else "    -" for f in Cost._fields[:3]
            )
            print(
                f"{name:12}{step:>11}{values['wall']:9.2f}{values['cpu']:9.2f}"
                f"{values['stored'] / 1e6:9.1f}{values['memory'] / 1e6:9.0f}   {ratios}"
            )
    first, again = median("clew", "first", "wall"), median("clew", "unchanged", "wall")
    cpu_first, cpu_again = median("clew", "first", "cpu"), median("clew", "unchanged", "cpu")
    print(
        f"unchanged / first: wall {again / first:.3f}, CPU {cpu_again / cpu_first:.3f} (must: 0.1)"
    )
    share = median("clew", "edited", "stored") / RANDOM
    print(f"1 % edited and a byte inserted costs {share:.2%} of the file (must: 3 %)")
    print(json.dumps({name: {s: rounds[0][name][s]._asdict() for s in STEPS} for name in names}))


def large(home: Path, gigabytes: int) -> None:
    """One file, half of it random bytes, half of it holes."""
    path = home / "large" / "file"
    path.parent.mkdir()
    with open(path, "wb") as file:
        for _ in range(gigabytes * 8 * 64):
            file.write(os.urandom(1 << 20))
            if file.tell() % (128 << 20) == 64 << 20:
                file.seek(64 << 20, os.SEEK_CUR)
        file.truncate(gigabytes << 30)
    env = {"PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    repo = home / "large-repo"
    wall, cpu, memory = run([sys.executable, "-c", CLEW, str(repo), str(path.parent)], env)
    print(
        f"a file of {gigabytes} GB: {wall:.1f} s, {cpu:.1f} s CPU, {weight(repo) / 1e6:.0f} MB "
        f"stored, peak memory {memory / 1e6:.0f} MB (must: 300)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to work; a temporary folder otherwise")
    parser.add_argument("--large", type=int, metavar="GB", help="only store one file this large")
    options = parser.parse_args()
    # Compiled modules are kept, as where Clew is installed: compiling them is not what is measured.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="clew-bench-", dir=options.folder) as name:
        home = Path(name)
        if options.large:
            large(home, options.large)
            return
        tree = home / "tree"
        make_tree(tree)
        shutil.copyfile(tree / "data" / "random.bin", home / "original")
        print(
            f"{sum(p.stat().st_size for p in tree.rglob('*') if p.is_file()) / 1e6:.0f} MB to store"
        )
        time.sleep(2.5)
        report([one_round(home, tree, i) for i in range(options.rounds)])


if __name__ == "__main__":
    main()
