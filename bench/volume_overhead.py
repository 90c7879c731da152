"""The overhead of watching a volume, next to bindfs on the same work in the same run (as root).

    python bench/volume_overhead.py [--rounds 3] [--files 20000] [--megabytes 1024]

Creates, reads and deletes small files, and writes and reads a large one, on a fresh ext4 file
system: natively, watched by fanotify, through clew-layer and through bindfs. The agent is complete:
it attributes, folds, hashes and spools what it observes, in a process of its own. Each tool's time
is divided by that of a native run directly before it. Prints the median ratio of each tool, and
how many events were lost.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.local.node_container import NodeContainer, pods_directory

SMALL = """
import os, sys, time
count, data, times = int(sys.argv[1]), b"x" * 1024, [time.perf_counter()]
for d in range(200): os.mkdir(f"{d}")
for i in range(count):
    fd = os.open(f"{i % 200}/{i}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(fd, data); os.close(fd)
times.append(time.perf_counter())
for i in range(count):
    fd = os.open(f"{i % 200}/{i}", os.O_RDONLY); os.read(fd, 2048); os.close(fd)
times.append(time.perf_counter())
for i in range(count): os.unlink(f"{i % 200}/{i}")
for d in range(200): os.rmdir(f"{d}")
times.append(time.perf_counter())
print("create", times[1] - times[0]); print("read", times[2] - times[1])
print("delete", times[3] - times[2]); print("all", times[3] - times[0])
"""
LARGE = """
import os, sys, time
block, count = b"x" * (1 << 20), int(sys.argv[1])
begin = time.perf_counter()
fd = os.open("large", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
for _ in range(count): os.write(fd, block)
os.fsync(fd); os.close(fd)
print("write", time.perf_counter() - begin)
buffer = bytearray(1 << 20)
for _ in range(2):
    begin = time.perf_counter()
    with open("large", "rb", buffering=0) as file:
        while file.readinto(buffer): pass
    warm = time.perf_counter() - begin
print("warm read", warm)
os.unlink("large")
"""
AGENT = """
import signal, sys, threading
from pathlib import Path
sys.path.insert(0, sys.argv[6])
from clew.agents.node.containers.container_discovery import ContainerWatch
from clew.agents.node.node_agent import ContainerChoice
from clew.agents.node.file_witness import FileWitness
from clew.agents.node.lifecycle_events import node_started
from clew.agents.node.node_observer import NodeObserver
from clew.agents.node.containers.watch_plan import PlannedContainer, PlannedMount, PlannedPod
from clew.agents.spool import Spool
from clew.witness.volumes.selection import Policy
from clew.witness.volumes.volumes import claim_volume
import json, os
pods, home, pod, point, layer = sys.argv[1:6]
volume = claim_volume("ml", "data", "pv-1")
mount = PlannedMount(volume, os.fsencode(point), b"", False, layer == "layer")
container = PlannedContainer("main", False, "", (mount,))
uid = pod.replace("-", "")
plan = PlannedPod(uid, "ml", "p", {}, {}, (), {"main": container})
policy = Policy(exclude=())
choice = ContainerChoice(policy)
spool = Spool(Path(home) / "spool")
witness = FileWitness(
    observer=NodeObserver(ContainerWatch(Path(pods)), {uid: plan}.get, choice.choose),
    spool=spool,
    state=Path(home), policy=policy, node=node_started("0" * 32, "n", 1, {}),
    subject_of=choice.subjects)
stopping = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stopping.set())
def tell():
    while not witness.watched(): stopping.wait(0.002)
    print("watched", flush=True)
threading.Thread(target=tell, daemon=True).start()
witness.run(stopping)
print(json.dumps(witness.counts))
"""

Times = dict[str, float]


@contextmanager
def new_volume(home: Path) -> Iterator[Path]:
    """A fresh file system."""
    image, volume = home / "image", home / "volume"
    volume.mkdir(exist_ok=True)
    with open(image, "wb") as file:
        file.truncate(4 << 30)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, volume], check=True)
    try:
        yield volume
    finally:
        subprocess.run(["umount", volume], check=True)
        image.unlink()


def parse(text: str) -> Times:
    rows = [line.rpartition(" ") for line in text.splitlines()]
    return {name: float(value) for name, _, value in rows}


def run_native(volume: Path, words: list[str]) -> Times:
    ran = subprocess.run(words, cwd=volume, check=True, capture_output=True, text=True)
    return parse(ran.stdout)


def run_bindfs(volume: Path, words: list[str]) -> Times:
    with tempfile.TemporaryDirectory() as point:
        subprocess.run(["bindfs", volume, point], check=True)
        try:
            return run_native(Path(point), words)
        finally:
            subprocess.run(["umount", point], check=True)


def run_watched(volume: Path, words: list[str], *, layer: bool, lost: list[int]) -> Times:
    with pods_directory() as pods, tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        container = NodeContainer(pods, volume, home, *words)
        way = "layer" if layer else "fanotify"
        source = str(Path(__file__).resolve().parents[1] / "src")
        told = [str(pods), folder, container.pod, str(container.point), way, source]
        agent = subprocess.Popen(
            [sys.executable, "-c", AGENT, *told], stdout=subprocess.PIPE, text=True
        )
        assert agent.stdout is not None
        assert agent.stdout.readline() == "watched\n"
        try:
            said = container.run()
            container.remove()
        finally:
            agent.send_signal(signal.SIGTERM)
            counts = json.loads(agent.communicate()[0])
        lost.append(
            counts.get("lost", 0) + counts.get("overflows", 0) + counts.get("unresolved", 0)
        )
        return parse(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--megabytes", type=int, default=1024)
    wanted = parser.parse_args()
    lost: list[int] = []
    tools: dict[str, Callable[[Path, list[str]], Times]] = {
        "fanotify": lambda volume, words: run_watched(volume, words, layer=False, lost=lost),
        "clew-layer": lambda volume, words: run_watched(volume, words, layer=True, lost=lost),
        "bindfs": run_bindfs,
    }
    works = {"small": [SMALL, str(wanted.files)], "large": [LARGE, str(wanted.megabytes)]}
    ratios: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(wanted.rounds):
            for work in works.values():
                words = [sys.executable, "-c", *work]
                for name, run in tools.items():
                    with new_volume(Path(folder)) as volume:
                        native = run_native(volume, words)
                        for phase, seconds in run(volume, words).items():
                            ratios.setdefault((phase, name), []).append(seconds / native[phase])
    print(f"{'':12}" + "".join(f"{name:>22}" for name in tools))
    for phase in dict.fromkeys(phase for phase, _ in ratios):
        cells = [ratios[phase, name] for name in tools]
        print(
            f"{phase:12}"
            + "".join(
                f"{statistics.median(cell):8.2f} ({min(cell):.2f}-{max(cell):.2f})".rjust(22)
                for cell in cells
            )
        )
    print(f"events lost: {sum(lost)}")


if __name__ == "__main__":
    if os.geteuid():
        raise SystemExit("as root: it mounts file systems")
    main()
