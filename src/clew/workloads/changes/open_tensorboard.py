"""Open a TensorBoard of some logs: the one that shows them already, or a new one."""

import hashlib
import re
from contextlib import suppress

from clew.documents.workloads.workload import OpenedTensorboard
from clew.errors import Exists
from clew.kube.controller.model import is_stopped
from clew.kube.objects import Key, dig, is_deleting, name_of
from clew.workloads.backend import Backend
from clew.workloads.changes.creation import create_tensorboard
from clew.workloads.changes.edits import set_stopped
from clew.workloads.details import path_of

_MAX_LABEL = 30


def open_tensorboard(
    backend: Backend, namespace: str, logspath: str, *, label: str = ""
) -> OpenedTensorboard:
    """`label`: what the logs are called, for the name of a new TensorBoard. Two requests at once
    create one TensorBoard, because its name follows from the logs."""
    logspath = logspath.rstrip("/")
    name, created = _find(backend, namespace, logspath), False
    if name is None:
        name = _make_name(label or logspath.rpartition("/")[2], logspath)
        with suppress(Exists):
            create_tensorboard(backend, namespace, {"name": name, "logspath": logspath}, None)
            created = True
    key = Key("Tensorboard", namespace, name)
    board = backend.get(key)
    if is_stopped(board):
        set_stopped(backend, key, False)
    return OpenedTensorboard(
        namespace=namespace, name=name, url=path_of(board) or "", created=created
    )


def _find(backend: Backend, namespace: str, logspath: str) -> str | None:
    """The name of a TensorBoard that shows these logs."""
    for board in backend.list("Tensorboard", namespace):
        same = str(dig(board, "spec", "logspath") or "").rstrip("/") == logspath
        if same and not is_deleting(board):
            return name_of(board)
    return None


def _make_name(label: str, logspath: str) -> str:
    """A name of small letters, digits and dashes, which begins with a letter."""
    text = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:_MAX_LABEL].strip("-")
    digest = hashlib.sha256(logspath.encode()).hexdigest()[:6]
    return f"{text}-{digest}" if text[:1].isalpha() else f"logs-{text}-{digest}".replace("--", "-")
