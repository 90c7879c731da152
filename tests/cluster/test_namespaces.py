"""The namespaces of a cluster and its connection to this machine, without Kubernetes in it.

Each script runs in namespaces of its own: it cannot affect this machine or the clusters on it, and
whatever it starts ends with it.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cluster.concurrency import OWN_CLUSTER

SOURCE = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.cluster,
    OWN_CLUSTER,
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces take root"),
]

HELD = """
import subprocess, sys, time
from pathlib import Path
from tools.cluster.namespaces import create_namespaces, destroy_namespaces, run_inside
from tools.cluster.network import FORWARDING, connect_network
from tools.cluster.nodes import cgroups
from tools.cluster.layout import Cluster
from tools.cluster.processes import is_running, start, stop, wait_until
from tools.cluster.commands import run
from tools.cluster.commands import ClusterError
from tools.cluster.lifecycle import remove_cluster

def held(folder, network=131):
    cluster = Cluster(Path(folder), network)
    cluster.logs.mkdir(parents=True)
    create_namespaces(cluster, seen=(cluster.folder,))
    return cluster
"""


def alone(script: str, *words: str | Path) -> list[str]:
    """What a script prints, line by line."""
    spaces = ("--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount")
    ran = subprocess.run(
        [
            *("unshare", *spaces, "--propagation", "private"),
            *("sh", "-c", 'mount -t tmpfs tmpfs /run && ip link set lo up && exec "$@"', "sh"),
            *(sys.executable, "-c", HELD + script, *words),
        ],
        cwd=SOURCE,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()


FORWARDS = """
FORWARDING.write_text(sys.argv[2])
for n, name in enumerate("ab"):
    connect_network(held(f"{sys.argv[1]}/{name}", 131 + n))
for name in sys.argv[3]:
    remove_cluster(Path(sys.argv[1], name))
    print(FORWARDING.read_text().strip())
"""


@pytest.mark.parametrize("order", ["ab", "ba"])
@pytest.mark.parametrize("before", ["0", "1"])
def test_the_last_to_go_leaves_forwarding_as_the_first_found_it(
    tmp_path: Path, before: str, order: str
) -> None:
    assert alone(FORWARDS, tmp_path, before, order) == ["1", before]


ASKS = """
ASK = '''
import socket, sys
try:
    socket.create_connection((sys.argv[1], 9), timeout=5)
except OSError as error:
    print(type(error).__name__)
'''

def asks(host, *where):
    print(run(*where, sys.executable, "-c", ASK, host).strip())

cluster = held(sys.argv[1])
connect_network(cluster)
run("ip", "netns", "add", "lan")
run("ip", "link", "add", "lan0", "type", "veth", "peer", "eth0", "netns", "lan")
run("ip", "address", "add", "192.168.7.1/24", "dev", "lan0")
run("ip", "link", "set", "lan0", "up")
lan = ("ip", "netns", "exec", "lan")
run(*lan, "ip", "address", "add", "192.168.7.2/24", "dev", "eth0")
run(*lan, "ip", "link", "set", "eth0", "up")
run(*lan, "ip", "route", "add", "default", "via", "192.168.7.1")

asks(cluster.control)
print(run_inside(cluster, sys.executable, "-c", ASK, "192.168.7.2").strip())
asks(cluster.control, *lan)
run("nft", "delete", "table", "ip", cluster.mark)
asks(cluster.control, *lan)
"""


def test_the_machine_does_not_forward_into_the_cluster(tmp_path: Path) -> None:
    """Whoever is refused was heard; who waits in vain was not. Without the rules, all are heard."""
    here, from_within, from_the_lan, without_rules = alone(ASKS, tmp_path / "cluster")
    assert (here, from_within) == ("ConnectionRefusedError", "ConnectionRefusedError")
    assert (from_the_lan, without_rules) == ("TimeoutError", "ConnectionRefusedError")


SEES = """
for place in sys.argv[1:]:
    run("mount", "-t", "tmpfs", "tmpfs", place)
    cluster = held(f"{place}/a tree/cluster")
    (cluster.folder / "there").write_text(place)
    print(run_inside(cluster, "cat", str(cluster.folder / "there")))
    run_inside(cluster, "touch", str(cluster.folder / "back"), "/run/hidden")
    assert (cluster.folder / "back").exists() and not Path("/run/hidden").exists()
    destroy_namespaces(cluster)
"""


def test_a_cluster_may_be_anywhere() -> None:
    """Also in folders that are covered by empty ones inside."""
    places = ["/mnt", "/var/lib", "/var/log", "/run"]
    assert alone(SEES, *places) == places


# Below the words are their addresses, and below these what the program works with: with so many, it
# does not miss the page on which the words begin.
MUTE = """
MUTE = '''
import ctypes, time
stat = open("/proc/self/stat").read().rpartition(")")[2].split()
begin, end = int(stat[45]) & -4096, int(stat[46])
size = (end - begin + 4095) & -4096
assert ctypes.CDLL(None).munmap(ctypes.c_void_p(begin), ctypes.c_size_t(size)) == 0
print("mute", flush=True)
time.sleep(3600)
'''

cluster = held(sys.argv[1])
start(cluster, "mute", sys.executable, "-c", MUTE, *["word"] * 2000)
log = cluster.logs / "mute.log"
wait_until(lambda: log.exists() and log.read_text() == "mute\\n", "it has no words")
words = run_inside(cluster, "sh", "-c", "cat /proc/*/cmdline").split("\\0")
print(MUTE in words, is_running(cluster, "mute"))
stop(cluster, "mute", how="KILL")
print(is_running(cluster, "mute"))
all_of_them = ("sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null || :")
wait_until(lambda: " Z " not in run_inside(cluster, *all_of_them), "it is buried")
"""


def test_a_program_without_arguments_is_found_running(tmp_path: Path) -> None:
    """As each is for a moment while it becomes another; this one threw them away."""
    assert alone(MUTE, tmp_path / "cluster") == ["False True", "False"]


STAYS = """
cluster = Cluster(Path(sys.argv[1]))
group = next(group for group in cgroups(cluster) if group.parent.name == "pids")
group.mkdir()
process = subprocess.Popen(["sleep", "infinity"])
try:
    (group / "cgroup.procs").write_text(str(process.pid))
    try:
        remove_cluster(cluster.folder)
    except ClusterError as failed:
        print(str(failed) == f"{group} stays, with the processes {process.pid}")
finally:
    process.kill()
    process.wait()
    remove_cluster(cluster.folder)
print(group.exists())
"""


def test_remaining_processes_are_reported(tmp_path: Path) -> None:
    assert alone(STAYS, tmp_path / "cluster") == ["True", "False"]
