"""Names that cannot work: told at once, instead of by a Service that never comes."""

from __future__ import annotations

import re

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LATER = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")

LONGEST = {"Notebook": 52, "Tensorboard": 58, "PVCViewer": 53}
"""A StatefulSet labels its Pods with its name and a hash, a port of a Service is called `http-`
and the name, a viewer's children `pvcviewer-` and the name; each within 63."""


def fault(kind: str, name: str) -> str:
    """Why no children can be made of a name; empty when they can."""
    longest = LONGEST[kind]
    if len(name) > longest:
        return f"The name is {len(name)} long; {kind}s may have {longest}."
    first = "a letter or a digit" if kind == "PVCViewer" else "a letter"
    if not (_LATER if kind == "PVCViewer" else _LABEL).fullmatch(name):
        return f"The name must be small letters, digits and dashes, and begin with {first}."
    return ""
