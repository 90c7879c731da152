"""What tests of tasks as Pods share: a bucket, the rights on it, and a place where tasks report."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.cluster.kube import CLEW, Kube
from tests.cluster.location import address_for_pods
from tests.driver import Project
from tests.local.s3_sidecar import KEY, SECRET, s3_server
from tools.cluster.lifecycle import find_cluster
from tools.cluster.nodes import ctr

BUCKET = "lake"


@dataclass(frozen=True)
class Lake:
    """A real S3 server that Pods and this machine reach by one address."""

    folder: Path
    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": "us-east-1",
        }

    def file(self, url: str) -> Path:
        """The file in which the server keeps an object."""
        return self.folder / "objects" / url.removeprefix("s3://")

    def admit(self, kube: Kube, **more: str) -> None:
        """Give the Pods of a namespace the rights on the bucket."""
        given = {**self.environment, **more}
        words = [f"--from-literal={name}={value}" for name, value in given.items()]
        kube("create", "secret", "generic", "clew-artifacts", *words)


@contextmanager
def lake_for_pods(folder: Path, cluster: Kube) -> Iterator[Lake]:
    address = address_for_pods(cluster)
    with s3_server(folder, address=address, keep_alive=True) as port:
        (folder / "objects" / BUCKET).mkdir()
        yield Lake(folder, f"http://{address}:{port}")


def make_project(folder: Path, kube: Kube, lake: Lake, **environment: str) -> Project:
    """A project whose pipelines run in the namespace `kube`."""
    lake.admit(kube)
    return Project(
        folder / "project",
        KUBECONFIG=kube.kubeconfig,
        CLEW_ARTIFACTS="s3://lake/runs",
        CLEW_IMAGE=CLEW,
        **lake.environment,
        **environment,
    )


def pods_of(kube: Kube, task: str) -> set[str]:
    """The names of the Pods of a task that exist."""
    found = kube.get("pods")["items"]
    return {
        pod["metadata"]["name"]
        for pod in found
        if pod["metadata"]["annotations"]["clew.dev/task-path"] == task
    }


@contextmanager
def pin_image(kube: Kube, image: str, name: str) -> Iterator[str]:
    """An image of the nodes under another name, as a registry would have given it: with its digest.
    Meanwhile, Kubernetes tells this digest of other Pods with the same image."""
    found = find_cluster(Path(kube.kubeconfig).parent)
    assert found is not None
    for node in found.nodes:
        listed = ctr(found, node, "images", "list", f"name=={image}").splitlines()
        digest = next(word for word in listed[1].split() if word.startswith("sha256:"))
        ctr(found, node, "images", "tag", "--force", image, f"{name}@{digest}")
    yield f"{name}@{digest}"
    for node in found.nodes:
        ctr(found, node, "images", "rm", f"{name}@{digest}")


@dataclass
class Reports:
    """Tasks report here, and wait here: a request is counted, then answered when its name may
    go on."""

    url: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    """By name, how many waited at the same time."""
    _waiting: Counter[str] = field(default_factory=Counter)
    _open: set[str] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def arrive(self, name: str) -> None:
        with self._changed:
            self.counts[name] += 1
            self._waiting[name] += 1
            self.most[name] = max(self.most[name], self._waiting[name])
            self._changed.notify_all()
            self._changed.wait_for(lambda: name in self._open)
            self._waiting[name] -= 1

    def open(self, name: str) -> None:
        """Let all go on that report under this name, now and later."""
        with self._changed:
            self._open.add(name)
            self._changed.notify_all()


@contextmanager
def reports_for_pods(cluster: Kube) -> Iterator[Reports]:
    reports = Reports()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reports.arrive(self.path.strip("/"))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer((address_for_pods(cluster), 0), Handler)
    server.daemon_threads = True
    reports.url = f"http://{server.server_address[0]}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield reports
    finally:
        server.shutdown()
        server.server_close()
