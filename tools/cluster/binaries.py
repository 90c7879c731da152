"""Kubernetes and its companions, built from the Go module proxy at pinned versions.

Each group of programs is built once per version into `${XDG_CACHE_HOME:-~/.cache}/clew/cluster/
VERSION/GROUP-VERSION`. A group is built under a lock, in a temporary folder that is then renamed:
so a folder that exists is complete, even after an interrupted build, and two processes that need it
at the same time build it once.
"""

import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools.cluster.commands import ClusterError, report, run, step

KUBERNETES = "1.36.3"
MAJOR, MINOR, _ = KUBERNETES.split(".")
GO = (1, 26)  # what Kubernetes' go.mod asks for

# Kubernetes requires these at v0.0.0, and replaces them by folders of its own repository.
STAGING = (
    *("api", "apiextensions-apiserver", "apimachinery", "apiserver", "cli-runtime", "client-go"),
    *("cloud-provider", "cluster-bootstrap", "code-generator", "component-base"),
    *("component-helpers", "controller-manager", "cri-api", "cri-client", "cri-streaming"),
    *("csi-translation-lib", "dynamic-resource-allocation", "endpointslice"),
    *("externaljwt", "kms", "kube-aggregator", "kube-controller-manager", "kube-proxy"),
    *("kube-scheduler", "kubectl", "kubelet", "metrics", "mount-utils", "pod-security-admission"),
    *("sample-apiserver", "sample-cli-plugin", "sample-controller", "streaming"),
)
# Calico is built against the Kubernetes it was made for. Its own API is a module that it finds
# beside it in its repository; the module proxy has it by date. This is the only version that
# resolves as a Go module.
CALICO = "1.11.0-cni-plugin.0.20250813170300-a0db560f0520"
CALICO_API = "github.com/projectcalico/api"
CALICO_REPLACES = (
    f"{CALICO_API} => {CALICO_API} v0.0.0-20240708202104-e3f70b269c2c",
    "k8s.io/kubernetes => k8s.io/kubernetes v1.29.15",
    *(
        f"k8s.io/{name} => k8s.io/{name} v0.29.15"
        for name in STAGING
        if name not in ("cri-client", "cri-streaming", "externaljwt", "streaming")  # came later
    ),
    "k8s.io/legacy-cloud-providers => k8s.io/legacy-cloud-providers v0.29.15",
)


@dataclass(frozen=True)
class Group:
    """Programs that are built together; `module` holds their main packages."""

    name: str
    version: str
    module: str
    packages: tuple[str, ...]
    stamps: tuple[str, ...] = ()  # -X linker values: without a version, clients refuse
    replaces: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}"


GROUPS = (
    Group(
        "kubernetes",
        KUBERNETES,
        "k8s.io/kubernetes",
        tuple(
            f"k8s.io/kubernetes/cmd/{name}"
            for name in (
                *("kube-apiserver", "kube-controller-manager", "kube-scheduler"),
                *("kubelet", "kube-proxy", "kubectl"),
            )
        ),
        stamps=(
            f"k8s.io/component-base/version.gitVersion=v{KUBERNETES}",
            f"k8s.io/component-base/version.gitMajor={MAJOR}",
            f"k8s.io/component-base/version.gitMinor={MINOR}",
        ),
        replaces=tuple(
            f"k8s.io/{name} => k8s.io/{name} v0{KUBERNETES.removeprefix('1')}" for name in STAGING
        ),
    ),
    Group("etcd", "3.6.16", "go.etcd.io/etcd/server/v3", ("go.etcd.io/etcd/server/v3",)),
    Group(
        "containerd",
        "2.2.9",
        "github.com/containerd/containerd/v2",
        tuple(
            f"github.com/containerd/containerd/v2/cmd/{name}"
            for name in ("containerd", "containerd-shim-runc-v2", "ctr")
        ),
        stamps=("github.com/containerd/containerd/v2/version.Version=v2.2.9",),
    ),
    Group("coredns", "1.14.7", "github.com/coredns/coredns", ("github.com/coredns/coredns",)),
    Group(
        "local-path-provisioner",
        "0.0.30",
        "github.com/rancher/local-path-provisioner",
        ("github.com/rancher/local-path-provisioner",),
    ),
    Group(
        "calico",
        CALICO,
        "github.com/projectcalico/calico",
        tuple(
            f"github.com/projectcalico/calico/{name}"
            for name in ("felix/cmd/calico-felix", "cni-plugin/cmd/calico")
        ),
        replaces=CALICO_REPLACES,
    ),
    Group(  # nodes by the thousand that run nothing, for tests of the scheduler
        "kwok", "0.8.0", "sigs.k8s.io/kwok", ("sigs.k8s.io/kwok/cmd/kwok",)
    ),
    Group(  # the object store of the tests
        "versitygw",
        "1.8.0",
        "github.com/versity/versitygw",
        ("github.com/versity/versitygw/cmd/versitygw",),
    ),
)

# Named by their last word, but for a module whose main package is its root.
PROGRAMS = {"go.etcd.io/etcd/server/v3": "etcd"}


def cache_directory() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "clew" / "cluster" / KUBERNETES


def search_path() -> str:
    """A PATH that finds the built programs first."""
    folders = [str(cache_directory() / group.folder) for group in GROUPS]
    return ":".join([*folders, "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"])


def program_directory(program: str) -> Path:
    """The folder that a built program is in."""
    return next(
        cache_directory() / group.folder
        for group in GROUPS
        for package in group.packages
        if PROGRAMS.get(package, package.rpartition("/")[2]) == program
    )


def build_missing() -> None:
    """Build what is missing."""
    for group in GROUPS:
        build_once(cache_directory() / group.folder, partial(_build, group))


def build_program(program: str) -> Path:
    """One of the programs; it is built first, unless it is there."""
    folder = program_directory(program)
    group = next(group for group in GROUPS if group.folder == folder.name)
    build_once(folder, partial(_build, group))
    return folder / program


def build_once(place: Path, make: Callable[[Path], None]) -> None:
    """Let `make` fill a folder, then rename it to `place`; do nothing if that exists already."""
    if place.exists():
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f"{place.name}.part")
    with locked(place.with_name(f"{place.name}.lock")):
        if place.exists():
            return
        shutil.rmtree(part, ignore_errors=True)  # of a build that was interrupted
        part.mkdir()
        make(part)
        part.rename(place)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file or folder against other processes; the kernel releases it when the process ends,
    however that happens."""
    lock = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"          waiting for another process, which holds {path}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _build(group: Group, folder: Path) -> None:
    _need_go()
    with step(f"built {group.name} {group.version}"):
        work = folder / "module"
        work.mkdir()
        replaces = "".join(f"replace {line}\n" for line in group.replaces)
        (work / "go.mod").write_text(
            f"module clew.dev/cluster\n\ngo {GO[0]}.{GO[1]}.0\n\n"
            f"require {group.module} v{group.version}\n\n{replaces}"
        )
        stamps = " ".join(f"-X {stamp}" for stamp in group.stamps)
        for package in group.packages:
            program = PROGRAMS.get(package, package.rpartition("/")[2])
            report(f"          building {program}")
            _go(
                *("build", "-mod=mod", "-trimpath", "-ldflags", f"-s -w {stamps}"),
                *("-o", f"../{program}", package),
                work=work,
            )
        shutil.rmtree(work)


def _go(*words: str, work: Path) -> None:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
    ran = subprocess.run(["go", *words], cwd=work, env=environment, check=False)
    if ran.returncode:
        raise ClusterError(f"go {words[0]} failed ({ran.returncode}); it said why above")


def _need_go() -> None:
    said = run("go", "version") if shutil.which("go") else ""
    version = re.search(r"go(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < GO:
        raise ClusterError(
            f"Kubernetes is built with Go {GO[0]}.{GO[1]} or newer, and here is "
            f"{said.strip() or 'none'}: install it from https://go.dev/dl"
        )
