"""What runs a component: the function of a lightweight one, or an import of an artifact.

The SDK compiles a lightweight component to a line of shell that writes the module to a file and
calls the SDK's executor on it, behind another one that installs packages. Both are recognised by
their shape; the module and the function are taken from them, and the rest is not run.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from clew.pipelines.documents import Part
from clew.pipelines.inputs import constant
from clew.pipelines.ir import (
    ArtifactSlot,
    Constant,
    FromInput,
    Importer,
    Input,
    PythonFunction,
    Slots,
)
from clew.pipelines.venvs import Installs, packages

_INSTALL = ["python3", "-m", "pip", "install"]
_RUNTIME = re.compile(r"kfp(?:==.*)?$|typing-extensions\b")
"""What the SDK installs for itself; here it is there already."""

HOST = "tasks run as processes of this machine, not in the images that they name"


def executor(part: Part, outputs: Slots, remarks: list[str]) -> PythonFunction | Importer:
    if "importer" in part:
        part.only("importer")
        return _importer(part.part("importer"), outputs)
    part.only("container")
    container = part.part("container")
    container.only("image", "command", "args", "env", "resources")
    remarks.append(HOST)
    return _function(container)


def _function(container: Part) -> PythonFunction:
    command, arguments = container.words("command"), container.words("args")
    installs: Installs = ()
    if command[:2] == ["sh", "-c"] and len(command) > 3 and "pip install" in command[2]:
        installs = tuple(_installs(command[2]))
        command = command[3:]
    lightweight = (
        len(command) == 4
        and command[:2] == ["sh", "-ec"]
        and "kfp.dsl.executor_main" in command[2]
        and arguments[:3] == ["--executor_input", "{{$}}", "--function_to_execute"]
        and len(arguments) == 4
    )
    if not lightweight:
        raise container.refused("command", "only lightweight Python components are supported")
    return PythonFunction(command[3], arguments[3], _environment(container), installs)


def _installs(script: str) -> Iterator[tuple[str, ...]]:
    """What each call of pip in the SDK's prologue is given, but for the SDK itself."""
    for line in script.splitlines():
        words = shlex.split(line)
        while _INSTALL[-1] in words:
            begin = words.index(_INSTALL[-1]) + 1
            end = words.index("&&", begin) if "&&" in words[begin:] else len(words)
            given = words[begin:end]
            if words[begin - len(_INSTALL) : begin] == _INSTALL and not all(
                map(_RUNTIME.match, packages(given))
            ):
                yield tuple(given)
            words = words[end:]


def _environment(container: Part) -> dict[str, str]:
    found = container.get("env") or []
    variables = {}
    for number, one in enumerate(found):
        part = Part(one, f"{container.place}.env[{number}]")
        part.only("name", "value")
        variables[part.text("name")] = str(constant(part, "value") or "")
    return variables


def _importer(part: Part, outputs: Slots) -> Importer:
    part.only("artifactUri", "typeSchema", "metadata", "reimport")
    uri = part.part("artifactUri")
    uri.only("constant", "runtimeParameter")
    name = uri.get("runtimeParameter")
    slot = outputs.artifacts.get("artifact") or ArtifactSlot("system.Artifact", "0.0.1")
    source = Input(FromInput(str(name)) if name else Constant(constant(uri, "constant")))
    return Importer(source, slot, constant(part, "metadata") or {})
