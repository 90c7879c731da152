"""Connections to Pods are opened again where a busy kubelet drops them."""

import json
import socket
import threading
from pathlib import Path

import pytest
from websockets.sync.server import serve
from websockets.typing import Subprotocol

from clew.errors import Unavailable
from clew.kube.scratch.scratch_client import ScratchClient

PROTOCOL = Subprotocol("v5.channel.k8s.io")


def open_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drops: int) -> str | bytes:
    """What a server says that drops its first connections."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        kubeconfig = {
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
            "current-context": "c",
        }
        (tmp_path / "kubeconfig").write_text(json.dumps(kubeconfig))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        server = serve(
            lambda connection: connection.send("hello"), sock=listener, subprotocols=[PROTOCOL]
        )

        def run() -> None:
            for _ in range(drops):
                listener.accept()[0].close()
            server.serve_forever()

        threading.Thread(target=run, daemon=True).start()
        try:
            with (
                ScratchClient() as client,
                client.connect_websocket("/exec", (), (PROTOCOL,)) as connection,
            ):
                return connection.recv()
        finally:
            server.shutdown()


def test_a_dropped_connection_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_connection(tmp_path, monkeypatch, drops=2) == "hello"


def test_one_that_is_always_dropped_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Unavailable, match="does not open a connection to a Pod"):
        open_connection(tmp_path, monkeypatch, drops=3)
