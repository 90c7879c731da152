"""A cluster comes up beside another, also where a killed one lies, and leaves nothing behind.

These bring up clusters of their own, so they need root and this machine, not KUBECONFIG.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.cluster.concurrency import OWN_CLUSTER
from tests.cluster.kube import Kube, pod
from tests.cluster.location import is_local
from tools.cluster.layout import Cluster
from tools.cluster.namespaces import holder_pid
from tools.cluster.shared_state import NOTES

SOURCE = Path(__file__).parents[2]
TUNABLES = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")
PLACES = ("/run", "/run/netns", "/var/lib", "/var/lib/cni", "/var/log", "/etc/cni", "/usr/libexec")

pytestmark = [
    pytest.mark.cluster,
    OWN_CLUSTER,
    pytest.mark.skipif(os.geteuid() != 0, reason="bringing up a cluster takes root"),
]


def tool(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tools.cluster", "--folder", str(folder), *words],
        cwd=SOURCE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done(folder: Path, *words: str) -> str:
    process = tool(folder, *words)
    out, said = process.communicate()
    assert process.returncode == 0, said
    return out


def run(*words: str) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def commands() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            yield path.read_text(errors="replace").replace("\0", " ")


def traces(cluster: Cluster) -> dict[str, object]:
    """All of this machine that a cluster could have touched, and nothing that others change."""
    mark, folder = cluster.mark, str(cluster.folder)
    return {
        "processes": [line for line in commands() if folder in line and "pytest" not in line],
        "holder": holder_pid(cluster),
        "notes": list(NOTES.glob(f"{mark}*")),
        "mounts": [
            line for line in Path("/proc/mounts").read_text().splitlines() if folder in line
        ],
        "links": [line for line in run("ip", "-brief", "link").splitlines() if mark in line],
        "routes": [line for line in run("ip", "route").splitlines() if mark in line],
        "tables": [line for line in run("nft", "list", "tables").splitlines() if mark in line],
        "chains": [line for line in run("nft", "list", "ruleset").splitlines() if "KUBE" in line],
        "cgroups": list(Path("/sys/fs/cgroup").glob(f"**/{mark}")),
        "tunables": [Path("/proc/sys", name).read_text() for name in TUNABLES],
        "folder": cluster.folder.exists(),
        "places": {
            place: sorted(name for name in os.listdir(place) if "kube" in name or "cni" in name)
            for place in PLACES
            if os.path.isdir(place)
        },
    }


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cluster"
    done(tmp_path / "cluster", "down")


def works(folder: Path) -> None:
    kube = Kube(str(folder / "kubeconfig"))
    assert kube.run(pod(f"says-{uuid.uuid4().hex[:8]}", "echo", "here")) == "here\n"
    assert is_local(kube.kubeconfig)


def remove(folder: Path) -> None:
    """Delete it, although the programs of the cluster write to it."""
    while folder.exists():
        shutil.rmtree(folder, ignore_errors=True)


def is_another_with_a_node_elsewhere(folder: Path) -> None:
    kube = Kube(str(folder / "kubeconfig"))
    address = {"type": "InternalIP", "address": "192.0.2.9"}
    about = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "elsewhere"}}
    kube("create", "-f", "-", given=json.dumps({**about, "status": {"addresses": [address]}}))
    is_local.cache_clear()
    assert not is_local(kube.kubeconfig)


def test_a_cluster_recovers_from_anything_and_down_leaves_nothing(folder: Path) -> None:
    before = traces(Cluster(folder))
    assert not before["folder"]
    done(folder, "up", "--bare")
    for part in ("kube-apiserver", "kubelet-node2", "containerd-node1"):
        done(folder, "stop", part, "--signal", "KILL")
        assert f"{part} does not run" in done(folder, "programs")
        done(folder, "start", part)
    done(folder, "up", "--bare")  # waits for what was started, and changes nothing else
    works(folder)
    during = traces(Cluster(folder))
    assert during["holder"] and during["links"] and during["cgroups"] and during["tables"]
    # As if the machine had gone down.
    pid = holder_pid(Cluster(folder))
    assert pid is not None
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([ended], [], [])  # readable when all of its processes have ended
    os.close(ended)
    done(folder, "up", "--bare")
    works(folder)
    # Without its directory it is still found, and replaced.
    second = holder_pid(Cluster(folder))
    remove(folder)
    done(folder, "up", "--bare")
    works(folder)
    assert second is not None and second != holder_pid(Cluster(folder))
    is_another_with_a_node_elsewhere(folder)
    for _ in range(2):  # the second time, there is nothing
        done(folder, "down")
        assert traces(Cluster(folder)) == before


@pytest.mark.parametrize("moment", ["certificates", "namespaces", "control plane", "nodes, names"])
def test_after_an_up_that_was_killed(folder: Path, moment: str) -> None:
    """Killed after some step, and its cluster with all of its programs left as they were."""
    before = traces(Cluster(folder))
    killed = tool(folder, "up", "--bare")
    assert killed.stderr is not None
    for line in killed.stderr:
        if moment in line:
            break
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    if moment == "control plane":
        remove(folder)  # the cluster is found without it
    done(folder, "down")
    assert traces(Cluster(folder)) == before
