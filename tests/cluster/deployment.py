"""Install deploy/ on the cluster, and connect to it."""

import base64
import json
import os
import re
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.cluster.kube import Kube
from tests.wait import wait_until
from tools.cluster.binaries import search_path

DEPLOY = Path(__file__).parents[2] / "deploy"
NAMESPACE = "clew"


def render(kube: Kube, overlay: str = ".", *, deploy: Path = DEPLOY) -> list[dict[str, Any]]:
    """What `kubectl apply -k` would apply."""
    return list(yaml.safe_load_all(kube("kustomize", str(deploy / overlay))))


def find_resource(found: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    """Find a resource by its name, which may end with a generated hash."""
    (one,) = [
        each
        for each in found
        if each["kind"] == kind and re.fullmatch(rf"{name}(-[a-z0-9]{{10}})?", _name(each))
    ]
    return one


def container_of(found: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The only one of a Deployment."""
    [one] = find_resource(found, "Deployment", name)["spec"]["template"]["spec"]["containers"]
    return dict(one)


def _name(found: dict[str, Any]) -> str:
    return str(found["metadata"]["name"])


def move(found: list[dict[str, Any]], namespace: str, *, users: str) -> list[dict[str, Any]]:
    """The same in another namespace, for one namespace of users: beside other installations."""
    text = json.dumps(found).replace(f'"namespace": "{NAMESPACE}"', f'"namespace": "{namespace}"')
    moved: list[dict[str, Any]] = json.loads(text)
    for each in moved:
        if each["kind"] == "Namespace":
            each["metadata"]["name"] = namespace
        if each["kind"].startswith("ClusterRole"):
            each["metadata"]["name"] += f"-{namespace}"
        if each.get("roleRef", {}).get("kind") == "ClusterRole":
            each["roleRef"]["name"] += f"-{namespace}"
    for name in ("clew-operator", "clew-server"):
        container_of(moved, name)["args"].append(f"--namespace={users}")
    return moved


@contextmanager
def install(kube: Kube, found: list[dict[str, Any]], namespace: str = NAMESPACE) -> Iterator[Kube]:
    """Install the resources until the end of the block; leave the CRDs, which others use."""
    wait_until_uninstalled(kube, namespace)
    clew = Kube(kube.kubeconfig, namespace)
    first = [each for each in found if each["kind"] in ("Namespace", "CustomResourceDefinition")]
    clew.apply(*first)
    clew.apply(*(each for each in found if each not in first))
    try:
        yield clew
    finally:
        roles = [each for each in found if each["kind"].startswith("ClusterRole")]
        for each in roles:
            clew("delete", each["kind"], _name(each), "--ignore-not-found")
        clew("delete", "namespace", namespace, "--ignore-not-found", "--wait=false")


def wait_until_uninstalled(kube: Kube, namespace: str = NAMESPACE) -> None:
    """Wait until the installation of another test is deleted."""
    kube.wait_for(f"namespace/{namespace}", "delete")


@contextmanager
def act_as_service_account(
    kube: Kube,
    found: list[dict[str, Any]],
    account: str,
    folder: Path,
    *,
    everywhere: bool = False,
) -> Iterator[Kube]:
    """The cluster as this service account sees it, in the test's namespace.

    Its cluster roles hold in that namespace only, unless `everywhere`.
    """
    bound = [
        (each["roleRef"]["kind"], each["roleRef"]["name"])
        for each in found
        if each["kind"] in ("ClusterRoleBinding", "RoleBinding")
        and each["subjects"][0]["name"] == account
    ]
    kube("create", "serviceaccount", account)
    for each in yaml.safe_load_all((DEPLOY / "base" / "secrets.yaml").read_text()):
        kube.apply({**each, "metadata": {"name": _name(each)}})  # the account may not create them
    own = [f"{kind.lower()}-{name}-{kube.namespace}" for kind, name in bound]
    for (kind, name), role in zip(bound, own, strict=True):
        rules = find_resource(found, kind, name)
        kube.apply({**rules, "kind": "ClusterRole", "metadata": {"name": role}})
        who = f"--serviceaccount={kube.namespace}:{account}"
        binding = "clusterrolebinding" if everywhere and kind == "ClusterRole" else "rolebinding"
        kube("create", binding, role, f"--clusterrole={role}", who)
    config = json.loads(kube("config", "view", "--raw", "--flatten", "--output=json"))
    config["users"][0]["user"] = {"token": kube("create", "token", account).strip()}
    config["contexts"][0]["context"]["namespace"] = kube.namespace
    (folder / "kubeconfig").write_text(json.dumps(config))
    try:
        yield Kube(str(folder / "kubeconfig"), kube.namespace)
    finally:
        kube("delete", "clusterrole,clusterrolebinding", *own, "--ignore-not-found")


def server_token(clew: Kube) -> str:
    held = wait_until(
        "there is a token",
        lambda: clew("get", "secret", "clew-server", "--output=jsonpath={.data.token}", ok=False),
    )
    return base64.b64decode(held).decode()


@contextmanager
def forward_port(kube: Kube, what: str, port: int) -> Iterator[str]:
    """Forward a local port to a Pod or Service; return its address."""
    with subprocess.Popen(
        ["kubectl", "--namespace", kube.namespace, "port-forward", what, f":{port}"],
        env={**os.environ, "PATH": f"{search_path()}:{os.environ['PATH']}"}
        | {"KUBECONFIG": kube.kubeconfig},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"127\.0\.0\.1:\d+", process.stdout.readline())
            assert found is not None
            yield f"http://{found[0]}"
        finally:
            process.terminate()


@contextmanager
def relay_socket(path: str, host: str) -> Iterator[int]:
    """Relay a TCP port to a Unix socket: a PostgreSQL, for Pods."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as other:
                other.connect(path)
                back = threading.Thread(target=_copy, args=(other, self.request), daemon=True)
                back.start()
                _copy(self.request, other)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server((host, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def _copy(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(1 << 16):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        one.close()
