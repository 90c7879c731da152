"""Parse the executor of a component: a Python function, a command in an image, or an importer.

The SDK compiles a lightweight component to a shell script that installs packages, and another that
writes the module to a file and calls the SDK's executor. Both are recognised by their form: the
module, the function and the packages are taken from them, and the scripts do not run. Every other
command runs as it is.
"""

import re
import shlex
from collections.abc import Iterator, Sequence

from clew.pipelines.spec import ir
from clew.pipelines.spec.command_words import InvalidStructure, find_unknown_in_word
from clew.pipelines.spec.document_part import Part
from clew.pipelines.spec.task_parser import parse_constant

_INSTALL = ["python3", "-m", "pip", "install"]
_RUNTIME = re.compile(r"kfp(?:==.*)?$|typing-extensions\b")
"""Packages that the SDK installs for itself; the interpreter has them already."""

ON_HOST_WARNING = (
    "Python components run as processes of this machine, not in the images that they name"
)


def parse_executor(
    part: Part, outputs: ir.Slots, warnings: list[str]
) -> ir.PythonFunction | ir.Command | ir.Importer:
    if "importer" in part:
        part.allow_only("importer")
        return _parse_importer(part.part("importer"), outputs)
    part.allow_only("container")
    container = part.part("container")
    container.allow_only("image", "command", "args", "env", "resources")
    function = _parse_function(container)
    if function is None:
        return _parse_command(container, outputs)
    warnings.append(ON_HOST_WARNING)
    return function


def _parse_function(container: Part) -> ir.PythonFunction | None:
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
    image = str(parse_constant(container, "image") or "")
    environment = _parse_environment(container)
    return ir.PythonFunction(command[3], arguments[3], environment, installs, image)


def _parse_command(container: Part, outputs: ir.Slots) -> ir.Command:
    for name in ("command", "args"):
        for number, word in enumerate(container.strings(name)):
            try:
                unknown = find_unknown_in_word(word, outputs)
            except InvalidStructure as error:
                raise container.error(f"{name}[{number}]", str(error)) from error
            if unknown is not None:
                raise container.error(
                    f"{name}[{number}]", f"the placeholder {unknown} is not supported"
                )
    image = str(parse_constant(container, "image") or "")
    if image.startswith("argostub/"):
        raise container.error("image", f"{image} creates a volume in a way that is not supported")
    return ir.Command(
        image,
        tuple(container.strings("command")),
        tuple(container.strings("args")),
        _parse_environment(container),
        container.location,
    )


def _parse_installs(script: str) -> Iterator[tuple[str, ...]]:
    """The arguments of each `pip install` in the SDK's prologue, except for the SDK itself."""
    for line in script.splitlines():
        words = shlex.split(line) if "pip install" in line else []
        while _INSTALL[-1] in words:
            start = words.index(_INSTALL[-1]) + 1
            end = words.index("&&", start) if "&&" in words[start:] else len(words)
            arguments = words[start:end]
            if words[start - len(_INSTALL) : start] == _INSTALL and not all(
                map(_RUNTIME.match, list_packages(arguments))
            ):
                yield tuple(arguments)
            words = words[end:]


def list_packages(arguments: Sequence[str]) -> list[str]:
    """The packages in the arguments of `pip install`, without options and their values."""
    packages, is_value = [], False
    for argument in arguments:
        if is_value:
            is_value = False
        elif argument in ("--index-url", "--extra-index-url", "--trusted-host"):
            is_value = True
        elif not argument.startswith("-"):
            packages.append(argument)
    return packages


def _parse_environment(container: Part) -> dict[str, str]:
    variables = {}
    for number, entry in enumerate(container.get("env") or []):
        part = Part(entry, f"{container.location}.env[{number}]")
        part.allow_only("name", "value")
        variables[part.string("name")] = str(parse_constant(part, "value") or "")
    return variables


def _parse_importer(part: Part, outputs: ir.Slots) -> ir.Importer:
    part.allow_only("artifactUri", "typeSchema", "metadata", "reimport", "downloadToWorkspace")
    uri = part.part("artifactUri")
    uri.allow_only("constant", "runtimeParameter")
    name = uri.get("runtimeParameter")
    slot = outputs.artifacts.get("artifact") or ir.ArtifactSlot("system.Artifact", "0.0.1")
    source = ir.Input(
        ir.FromInput(str(name)) if name else ir.Constant(parse_constant(uri, "constant"))
    )
    to_workspace = bool(part.get("downloadToWorkspace"))
    return ir.Importer(source, slot, parse_constant(part, "metadata") or {}, to_workspace)
