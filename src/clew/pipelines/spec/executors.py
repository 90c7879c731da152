"""What runs a component: the function of a lightweight one, a command in an image, or an import.

The SDK compiles a lightweight component to a line of shell that writes the module to a file and
calls the SDK's executor on it, behind another one that installs packages. Both are recognised by
their shape; the module and the function are taken from them, and the rest is not run. Whatever has
another shape is a command, to be run as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from clew.pipelines.spec.document_part import Part
from clew.pipelines.spec.ir import (
    ArtifactSlot,
    Command,
    Constant,
    FromInput,
    Importer,
    Input,
    PythonFunction,
    Slots,
)
from clew.pipelines.spec.task_parser import parse_constant
from clew.pipelines.tasks.containers.command import InvalidStructure, find_unknown_in_word
from clew.pipelines.tasks.venvs import list_packages

_INSTALL = ["python3", "-m", "pip", "install"]
_RUNTIME = re.compile(r"kfp(?:==.*)?$|typing-extensions\b")
"""What the SDK installs for itself; here it is there already."""

ON_HOST_WARNING = (
    "Python components run as processes of this machine, not in the images that they name"
)


def parse_executor(
    part: Part, outputs: Slots, warnings: list[str]
) -> PythonFunction | Command | Importer:
    if "importer" in part:
        part.allow_only("importer")
        return _parse_importer(part.part("importer"), outputs)
    part.allow_only("container")
    container = part.part("container")
    container.allow_only("image", "command", "args", "env", "resources")
    found = _parse_function(container)
    if found is None:
        return _parse_command(container, outputs)
    warnings.append(ON_HOST_WARNING)
    return found


def _parse_function(container: Part) -> PythonFunction | None:
    command, arguments = container.strings("command"), container.strings("args")
    prologue = ""
    if command[:2] == ["sh", "-c"] and len(command) > 3 and "pip install" in command[2]:
        prologue, command = command[2], command[3:]
    lightweight = (
        len(command) == 4
        and command[:2] == ["sh", "-ec"]
        and "kfp.dsl.executor_main" in command[2]
        and arguments[:3] == ["--executor_input", "{{$}}", "--function_to_execute"]
        and len(arguments) == 4
    )
    if not lightweight:
        return None
    installs = tuple(_parse_installs(prologue))
    return PythonFunction(command[3], arguments[3], _parse_environment(container), installs)


def _parse_command(container: Part, outputs: Slots) -> Command:
    for name in ("command", "args"):
        for number, word in enumerate(container.strings(name)):
            try:
                strange = find_unknown_in_word(word, outputs)
            except InvalidStructure as error:
                raise container.error(f"{name}[{number}]", str(error)) from error
            if strange is not None:
                raise container.error(
                    f"{name}[{number}]", f"the placeholder {strange} is not supported"
                )
    image = str(parse_constant(container, "image") or "")
    if image.startswith("argostub/"):
        raise container.error("image", f"{image} is a volume of a cluster, and not supported")
    return Command(
        image,
        tuple(container.strings("command")),
        tuple(container.strings("args")),
        _parse_environment(container),
        container.location,
    )


def _parse_installs(script: str) -> Iterator[tuple[str, ...]]:
    """What each call of pip in the SDK's prologue is given, but for the SDK itself."""
    for line in script.splitlines():
        words = shlex.split(line) if "pip install" in line else []
        while _INSTALL[-1] in words:
            begin = words.index(_INSTALL[-1]) + 1
            end = words.index("&&", begin) if "&&" in words[begin:] else len(words)
            given = words[begin:end]
            if words[begin - len(_INSTALL) : begin] == _INSTALL and not all(
                map(_RUNTIME.match, list_packages(given))
            ):
                yield tuple(given)
            words = words[end:]


def _parse_environment(container: Part) -> dict[str, str]:
    found = container.get("env") or []
    variables = {}
    for number, one in enumerate(found):
        part = Part(one, f"{container.location}.env[{number}]")
        part.allow_only("name", "value")
        variables[part.string("name")] = str(parse_constant(part, "value") or "")
    return variables


def _parse_importer(part: Part, outputs: Slots) -> Importer:
    part.allow_only("artifactUri", "typeSchema", "metadata", "reimport", "downloadToWorkspace")
    uri = part.part("artifactUri")
    uri.allow_only("constant", "runtimeParameter")
    name = uri.get("runtimeParameter")
    slot = outputs.artifacts.get("artifact") or ArtifactSlot("system.Artifact", "0.0.1")
    source = Input(FromInput(str(name)) if name else Constant(parse_constant(uri, "constant")))
    to_workspace = bool(part.get("downloadToWorkspace"))
    return Importer(source, slot, parse_constant(part, "metadata") or {}, to_workspace)
