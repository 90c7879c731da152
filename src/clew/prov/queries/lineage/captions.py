"""The caption of a node in a drawing: its kind, a title, a subtitle, and what it is grouped by.

Names and commands come from records of any origin: what is not printable is written as an escape,
and texts are cut, so that no name can disturb the drawing.
"""

import re
from collections.abc import Iterable, Sequence

from msgspec import UNSET

from clew.documents.lineage.lineage import Node
from clew.prov.queries.formats import NETWORK, STREAM

MAX_TITLE = 120
_MODELS = re.compile(
    r"\.(pkl|pickle|joblib|pt|pth|ckpt|onnx|h5|hdf5|keras|safetensors|gguf|pb|tflite|mlmodel|bst)$",
    re.IGNORECASE,
)
_OBJECTS = ("s3://", "gs://", "hdfs://", "abfs://", "az://")
_SCHEMES: dict[str, str | tuple[str, ...]] = {
    "stream": STREAM,
    "network": NETWORK,
    "image": ("image://", "image@"),
    **{kind: f"{kind}://" for kind in ("configmap", "secret", "service", "ip", "pod")},
}
_SEPARATOR = re.compile(r"[/\\]")
_NAMES = {
    "data": "file",
    "configuration": "configuration file",
    "source": "source file",
    "package": "file of packages",
    "system": "file of the system",
    "stream": "stream",
    "network": "network address",
    "process": "process",
}


def kind_of_node(node: Node) -> str:
    """The kind to draw, in more detail than `Node.kind`."""
    if node.pod:
        return "pod"
    if node.kind == "volume":
        return node.kind
    if node.command is not UNSET:
        return node.kind
    if node.kind == "execution" and node.id.startswith("r"):
        return "run"
    if node.locator is UNSET:
        return node.kind
    return kind_of_locator(node.locator, node.class_ or "data")


def kind_of_locator(locator: str, category: str = "data") -> str:
    """The kind of a version at this locator. `category`: the class of the file."""
    for kind, starts in _SCHEMES.items():
        if locator.startswith(starts):
            return kind
    if category == "data":
        if _MODELS.search(locator):
            return "model"
        if locator.startswith(_OBJECTS):
            return "object"
    return category


def is_installed(kind: str) -> bool:
    return kind in ("package", "system")


def title_of(node: Node) -> str:
    if node.pod:
        return clean(node.label.removeprefix("pod "))
    if node.kind == "request":
        return clean(node.label)
    if node.command is not UNSET:
        return clean(node.name or short_command(node.command, node.label))
    if node.kind == "stream":
        return f"{clean(node.label)} of {node.execution}"
    if node.path is not UNSET and "://" not in node.path:
        return clean(node.path.rsplit("/", 1)[-1] or node.path)
    return clean(node.label)


def subtitle_of(node: Node) -> str:
    if node.pod:
        return " · ".join(filter(None, (str(node.execution or node.id), clean(node.image or ""))))
    if node.command is not UNSET:
        return node.id
    if node.locator is UNSET:
        return ""
    size = _format_size(node.size) if isinstance(node.size, int) else ""
    package = node.package.name if node.package else ""
    words = (str(node.execution or "now"), size, clean(package))
    return " · ".join(word for word in words if word)


def short_command(command: Sequence[str], label: str) -> str:
    """A command without the directories of its program."""
    if not command:
        return label
    return " ".join([program_of(command, label), *command[1:]])


def program_of(command: Sequence[str], label: str) -> str:
    return _SEPARATOR.split(command[0] if command else label)[-1] or label


def likeness(node: Node, kind: str, *, made: bool) -> str:
    """Nodes with the same likeness may stand as one. `made`: a recorded process made it."""
    if node.command is not UNSET:
        return f"{kind} {program_of(node.command, node.label)}"
    if is_installed(kind) and not made:
        return f"{kind} {node.package.name if node.package else ''}"
    return f"{kind} {str(node.path or '').rsplit('/', 1)[-1].rpartition('.')[2]}"


def describe_group(nodes: Sequence[Node], kind: str) -> tuple[str, str]:
    """The title and the subtitle of a group."""
    first = nodes[0]
    if first.command is not UNSET:
        return f"{len(nodes)} × {clean(program_of(first.command, first.label))}", _such_as(first)
    name = _NAMES.get(kind, kind)
    title = f"{len(nodes)} {name}s"
    if name.startswith("file of"):
        title = f"{len(nodes)} files"
    packages = {node.package.name for node in nodes if node.package}
    if len(packages) == 1:
        return title, clean(f"of {packages.pop()}")
    if packages:
        return title, f"of {len(packages)} packages"
    if kind == "system":
        return title, "of the system"
    directory = shared_directory(str(node.path or "") for node in nodes)
    return title, clean(f"in {directory}") if directory else _such_as(first)


def shared_directory(paths: Iterable[str]) -> str:
    """The deepest directory that holds all of them; empty if they are not paths."""
    shared: list[str] | None = None
    for path in paths:
        parts = path.split("/")[:-1]
        if shared is None:
            shared = parts
            continue
        same = 0
        while same < min(len(shared), len(parts)) and shared[same] == parts[same]:
            same += 1
        shared = shared[:same]
    return "/".join(shared or [])


def clean(text: str) -> str:
    """Printable text of a bounded length: direction marks, controls and the like are escaped."""
    cut = text[: MAX_TITLE + 1]
    shown = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in cut
    )
    return shown if len(shown) <= MAX_TITLE else shown[: MAX_TITLE - 1] + "…"


def _escape(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode()


def _such_as(node: Node) -> str:
    return f"such as {title_of(node)}"


def _format_size(size: int) -> str:
    if size < 1000:
        return f"{size} B"
    value, unit = size / 1000, "kB"
    for larger in ("MB", "GB", "TB"):
        if value >= 999.95:
            value, unit = value / 1000, larger
    return f"{value:.1f} {unit}"
