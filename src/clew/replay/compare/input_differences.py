"""Find the differing inputs of two processes: arguments, variables, files, listings, streams.

Only results of the same lookup count. A file that only one of them opened is something it did, not
an input; but a file that one found and the other did not is. Each difference says where it came
from: another process of the execution, or outside.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from clew.documents.ids import Digest, Locator
from clew.prov.locators import path_of
from clew.prov.package_urls import parse_purl
from clew.prov.queries.execution_record import Activity, Version
from clew.prov.queries.formats import path_fields
from clew.redaction import MASK
from clew.replay.compare.execution_pair import ExecutionPair
from clew.replay.compare.output_comparison import exit_code
from clew.replay.compare.process_alignment import ProcessPair
from clew.replay.execution_index import ExecutionIndex
from clew.safe_path import KERNEL_DIRECTORIES

_MAX_TEXT = 80


@dataclass(frozen=True)
class InputDifference:
    """One input that differed."""

    cause: str
    """argument, variable, input, library, listing or order."""
    what: str
    """Its name: a path, the name of a variable, a package."""
    detail: str
    source: ProcessPair | None = None
    """The process pair it came from; None: from outside."""
    at: int = 0
    """The time in `b`: effects before it have another cause."""
    certain: bool = True
    """False if it may not matter: the bytes are not recorded, or a rule covers the difference."""
    names: tuple[str, ...] = ()
    """The files it is about."""


def find_input_differences(executions: ExecutionPair, pair: ProcessPair) -> list[InputDifference]:
    """Find all inputs of the two that differ."""
    return [
        *_argument_differences(executions, pair),
        *_file_differences(executions, pair),
        *_presence_differences(executions, pair),
        *_answer_differences(executions, pair),
        *_variable_differences(executions, pair),
        *_status_differences(executions, pair),
        *_flow_differences(executions, pair),
        *_fork_differences(executions, pair),
    ]


# -- what it was started with


def _argument_differences(
    executions: ExecutionPair, pair: ProcessPair
) -> Iterator[InputDifference]:
    if pair.b.exe is None:  # it has its parent's words
        return
    if pair.a.command != pair.b.command:
        words = _describe_words(pair.a.command, pair.b.command)
        yield InputDifference("argument", "", words, executions.parent(pair), pair.b.started)
    elif pair.a.exe != pair.b.exe:
        detail = f"runs {pair.a.exe} → {pair.b.exe}"
        yield InputDifference("argument", "", detail, executions.parent(pair), pair.b.started)
    elif pair.b.command == executions.b.record.itself.command:
        yield from _given_arguments(executions, pair)
    directories = [
        side.name(Locator(f"file://{process.cwd}/."))
        for side, process in ((executions.a, pair.a), (executions.b, pair.b))
    ]
    if directories[0] != directories[1]:
        detail = f"working directory {pair.a.cwd} → {pair.b.cwd}"
        yield InputDifference("argument", "", detail, executions.parent(pair), pair.b.started)


def _given_arguments(executions: ExecutionPair, pair: ProcessPair) -> Iterator[InputDifference]:
    """Secrets in the command, which a repeat gets again; only variables can be compared."""
    for number, names in executions.b.record.facets.get("argument_secrets", {}).items():
        for name in names:
            if name and name not in executions.b.seals(pair.b):
                detail = f"argument {number}: the secret {name} was provided again and may differ"
                yield InputDifference("argument", name, detail, at=pair.b.started, certain=False)


def _describe_words(a: list[str], b: list[str]) -> str:
    if len(a) == len(b):
        changed = [n for n in range(len(a)) if a[n] != b[n]]
        return ", ".join(f"argument {n}: {_short(a[n])} → {_short(b[n])}" for n in changed[:3])
    return f"{len(a)} words → {len(b)} words: {_short(' '.join(b))}"


def _variable_differences(
    executions: ExecutionPair, pair: ProcessPair
) -> Iterator[InputDifference]:
    if pair.b.exe is None:
        return
    a, b = executions.a.environment(pair.a), executions.b.environment(pair.b)
    above = executions.parent(pair)
    inherited = above is None or (
        executions.a.environment(above.a),
        executions.b.environment(above.b),
    )
    seals = executions.a.seals(pair.a), executions.b.seals(pair.b)
    for name in sorted(a.keys() | b.keys()):
        certain = True
        detail = f"{name}: {_value(a.get(name))} → {_value(b.get(name))}"
        if a.get(name) == b.get(name):
            if MASK not in a[name] or seals[0].get(name) == seals[1].get(name):
                continue
            # a seal is comparable only within the project that made it
            certain = name in seals[0] and not executions.a.record.execution.made_elsewhere
            differs = "has another value" if certain else "was provided again and may differ"
            detail = f"the secret {name} {differs}"
        passed_on = inherited is True or all(
            upper.get(name) == own.get(name) for upper, own in zip(inherited, (a, b), strict=True)
        )
        source = None if passed_on else above
        yield InputDifference("variable", name, detail, source, pair.b.started, certain)


# -- what it read


def _file_differences(executions: ExecutionPair, pair: ProcessPair) -> Iterator[InputDifference]:
    a, b = _read_by(executions.a, pair.a), _read_by(executions.b, pair.b)
    packages: dict[str, list[tuple[Version, Version]]] = {}
    for name in sorted(a.keys() & b.keys()):
        for (one, _), (other, at) in zip(a[name], b[name], strict=False):
            if executions.same_content(one, other):
                continue
            package = one.package or other.package
            if package and one.found and other.found:
                packages.setdefault(_package(package)[0], []).append((one, other))
            else:
                yield replace(_file_difference(executions, pair, name, one, other), at=at)
            break
    for package, files in packages.items():
        yield _library_difference(executions, package, files)


def _read_by(side: ExecutionIndex, process: Activity) -> dict[str, list[tuple[Version, int]]]:
    """The versions that it read, by name, each once, with the time."""
    versions: dict[str, dict[int, tuple[Version, int]]] = {}
    for edge, version in side.used[process.key]:
        path = path_of(version.locator)
        if path is None or not path.startswith(KERNEL_DIRECTORIES):
            line = versions.setdefault(side.name(version.locator), {})
            line.setdefault(version.key, (version, edge.at))
    return {name: list(line.values()) for name, line in versions.items()}


def _file_difference(
    executions: ExecutionPair, pair: ProcessPair, name: str, a: Version, b: Version
) -> InputDifference:
    path = path_fields(b.locator)["path"]
    if a.found and b.found:
        return InputDifference("input", path, f"{path} differs", names=(name,))
    maker = executions.common_writer(a, b)
    if maker is None or (
        executions.overlapped(pair, maker) and executions.same_final_content(name)
    ):
        return InputDifference("order", path, f"{path} was read at another point of its writing")
    known = None not in (executions.a.digest(a), executions.b.digest(b))
    sure = known and not executions.contents.equivalent(a, b)
    return InputDifference("input", path, f"{path} differs", maker, certain=sure, names=(name,))


def _package(text: str) -> tuple[str, str]:
    """A package's name, and its version."""
    try:
        purl = parse_purl(text)
    except ValueError:
        return text, ""
    return f"{purl.manager}/{purl.name}", purl.version


def _library_difference(
    executions: ExecutionPair, package: str, files: list[tuple[Version, Version]]
) -> InputDifference:
    versions = [
        sorted({_package(both[n].package or "")[1] for both in files} - {""}) for n in (0, 1)
    ]
    words = [", ".join(found) or "another" for found in versions]
    name = package.split("/", 1)[-1]
    detail = f"{name} {words[0]} → {words[1]}"
    if words[0] == words[1]:
        changed = path_fields(files[0][1].locator)["path"]
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        detail = f"{name} {words[0]}, but {changed}{more} differs"
    return InputDifference(
        "library", package, detail, names=tuple(executions.b.name(b.locator) for _, b in files)
    )


# -- what it looked for


def _presence_differences(
    executions: ExecutionPair, pair: ProcessPair
) -> Iterator[InputDifference]:
    a, b = _first_lookups(executions.a, pair.a), _first_lookups(executions.b, pair.b)
    for name in sorted(a.keys() & b.keys()):
        there, at = a[name][1], b[name][0]
        if there == b[name][1]:
            continue
        side, process = (executions.a, pair.a) if there else (executions.b, pair.b)
        if _only_written(side, process, name):
            continue
        shown = path_fields(f"file://{name}")["path"]
        words = "there, then absent" if there else "absent, then there"
        detail = f"{shown} was {words}"
        maker = executions.writer_of(side, name)
        if maker is None:
            yield InputDifference("input", shown, detail, at=at, names=(name,))
        elif executions.both_wrote(name):
            yield InputDifference("order", shown, detail, at=at)
        elif maker != pair:
            yield InputDifference("input", shown, detail, maker, at)


def _first_lookups(side: ExecutionIndex, process: Activity) -> dict[str, tuple[int, bool]]:
    """The time of the first lookup of each path, and whether the path existed."""
    looks_and_uses = [
        (look.at, look.locator, look.kind != "absent")
        for look in side.looks[process.key]
        if look.kind != "absent" or look.answer == "ENOENT"
    ]
    looks_and_uses += [(edge.at, version.locator, True) for edge, version in side.used[process.key]]
    looks: dict[str, tuple[int, bool]] = {}
    for at, locator, there in sorted(looks_and_uses):
        looks.setdefault(side.name(locator), (at, there))
    return looks


def _only_written(side: ExecutionIndex, process: Activity, name: str) -> bool:
    """Whether it replaced the file without reading it: then its existence is no input."""
    read = any(side.name(version.locator) == name for _, version in side.used[process.key])
    written = any(side.name(version.locator) == name for _, version in side.generated[process.key])
    return written and not read


def _answer_differences(executions: ExecutionPair, pair: ProcessPair) -> Iterator[InputDifference]:
    """Differences in listings and link targets."""
    a, b = _first_answers(executions.a, pair.a), _first_answers(executions.b, pair.b)
    for kind, name in sorted(a.keys() & b.keys()):
        (one, _), (other, at) = a[kind, name], b[kind, name]
        if one == other:
            continue
        shown = path_fields(f"file://{name}")["path"]
        if kind == "listing":
            for difference in _listing_differences(executions, pair, name, (one, other)):
                yield replace(difference, at=at)
        else:
            yield InputDifference(
                "input", shown, f"the link {shown} led to {one}, then to {other}", at=at
            )


def _first_answers(
    side: ExecutionIndex, process: Activity
) -> dict[tuple[str, str], tuple[str, int]]:
    """The first answer to each lookup of a directory or link, and when."""
    listings: dict[tuple[str, str], tuple[str, int]] = {}
    for look in side.looks[process.key]:
        if look.kind in ("listing", "link") and look.answer:
            listings.setdefault((look.kind, side.name(look.locator)), (look.answer, look.at))
    return listings


def _listing_differences(
    executions: ExecutionPair, pair: ProcessPair, directory: str, answers: tuple[str, str]
) -> Iterator[InputDifference]:
    shown = path_fields(f"file://{directory}")["path"]
    detail = f"{shown} was listed with other names"
    both = executions.read(Digest(answers[0])), executions.read(Digest(answers[1]))
    if both[0] is None or both[1] is None:
        yield InputDifference("listing", shown, detail, names=(directory,))
        return
    before, after = set(both[0].split(b"\0")), set(both[1].split(b"\0"))
    signs = [(f"+{n.decode(errors='replace')}", n) for n in sorted(after - before)]
    signs += [(f"-{n.decode(errors='replace')}", n) for n in sorted(before - after)]
    detail += ": " + ", ".join(sign for sign, _ in signs[:5]) + (" …" if len(signs) > 5 else "")
    sources: set[ProcessPair | None] = set()
    for sign, _ in signs:
        name = f"{directory.rstrip('/')}/{sign[1:]}"
        if executions.both_wrote(name):
            yield InputDifference("order", shown, detail)
            return
        sources.add(executions.writer_of(executions.b if sign[0] == "+" else executions.a, name))
    others = sources - {None, pair}
    if not others:
        yield InputDifference("listing", shown, detail, names=(directory,))
    for source in others:
        yield InputDifference("listing", shown, detail, source)


# -- what other processes passed to it


def _status_differences(executions: ExecutionPair, pair: ProcessPair) -> Iterator[InputDifference]:
    for child in executions.b.children[pair.b.key]:
        known = executions.alignment.by_b.get(child.key)
        if known is not None and exit_code(known.a) != exit_code(known.b):
            who = executions.b.id(child)
            detail = f"{who} ended with {exit_code(known.a)} → {exit_code(known.b)}"
            yield InputDifference("input", who, detail, known, executions.b.end(child))


def _flow_differences(executions: ExecutionPair, pair: ProcessPair) -> Iterator[InputDifference]:
    for source in executions.b.sources[pair.b.key]:
        known = executions.alignment.by_b.get(source)
        if known is not None and known != pair:
            who = executions.b.id(known.b)
            detail = f"the data that {who} passed to it"
            yield InputDifference("input", who, detail, known, known.b.started, certain=False)


def _fork_differences(executions: ExecutionPair, pair: ProcessPair) -> Iterator[InputDifference]:
    """A process that never called exec, such as a subshell, may use all that its parent had."""
    above = executions.parent(pair)
    if pair.b.exe is not None or above is None:
        return
    kinds = (_argument_differences, _variable_differences, _fork_differences)
    if any(True for kind in kinds for _ in kind(executions, above)):
        who = executions.b.id(above.b)
        detail = f"the data that {who} passed to it"
        yield InputDifference("input", who, detail, above, pair.b.started, certain=False)


def _value(text: str | None) -> str:
    return "not set" if text is None else _short(text)


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
