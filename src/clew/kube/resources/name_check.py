"""Reject names whose children Kubernetes would reject, with a clear reason."""

import re

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LATER = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")

MAX_LENGTH = {"Notebook": 52, "Tensorboard": 58, "PVCViewer": 53}
"""Kubernetes allows 63 characters: a StatefulSet labels its Pods with its name and a hash, the port
of a Service is named `http-NAME`, the children of a viewer `pvcviewer-NAME`."""


def check_name(kind: str, name: str) -> str:
    """Why a name is invalid; empty if it is valid."""
    longest = MAX_LENGTH[kind]
    if len(name) > longest:
        return f"The name is {len(name)} long; {kind}s may have {longest}."
    first = "a letter or a digit" if kind == "PVCViewer" else "a letter"
    if not (_LATER if kind == "PVCViewer" else _LABEL).fullmatch(name):
        return f"The name must be small letters, digits and dashes, and begin with {first}."
    return ""
