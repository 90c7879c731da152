"""List all differences between two executions, as the document of `clew diff`."""

import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clew.documents.comparisons.differences import (
    Change,
    Difference,
    Divergence,
    ExecutionDiff,
    PackageChange,
    ProcessChange,
)
from clew.documents.ids import ProcessId
from clew.prov.package_urls import parse_purl
from clew.prov.queries.execution_record import Activity, ExecutionRecord, Version
from clew.prov.queries.formats import path_fields, process_id
from clew.replay.compare.entity_names import EntityNames
from clew.replay.compare.output_comparison import (
    Comparison,
    ContentComparer,
    ReadContent,
    exit_code,
    is_stream,
)
from clew.replay.compare.process_alignment import align_processes
from clew.replay.compare.volatile_rules import Rule

HARDWARE_FACETS = ("cpu", "gpu", "driver", "cuda", "cudnn")
_HARDWARE = (*HARDWARE_FACETS, "memory")
_NOT_ENVIRONMENT = frozenset(
    {
        *(
            "kind",
            "collection",
            "packages",
            "boot",
            "redacted",
            "argument_secrets",
            "variables_b64",
            "streams",
            "sealed",
            "masked",
            "network",
            "typed",
        ),
        *("processes", "inputs", "outputs", "bytes", "new_bytes", "pinned", "cwd"),
    }
)
"""Facets that another section shows, or that say nothing about the environment."""


def diff_executions(
    a: ExecutionRecord,
    b: ExecutionRecord,
    comparison: Comparison,
    read: ReadContent,
    rules: Sequence[Rule],
    divergence: Divergence | None,
) -> ExecutionDiff:
    packages = tuple(_packages(a, b))
    return ExecutionDiff(
        a=a.execution.id,
        b=b.execution.id,
        verdict=comparison.verdict,
        command=_change(a.itself.command, b.itself.command),
        environment=_environment(a, b),
        packages=packages,
        hardware=_facets(a, b, lambda name: name in _HARDWARE),
        processes=tuple(_processes(a, b)),
        inputs=tuple(_inputs(a, b, packages, ContentComparer(read, rules))),
        outputs=comparison.differences,
        divergence=divergence,
    )


def _change(a: Any, b: Any) -> Change | None:
    return None if a == b else Change(a=a, b=b)


def _environment(a: ExecutionRecord, b: ExecutionRecord) -> dict[str, Any]:
    differences = _facets(a, b, lambda name: name not in _HARDWARE and name not in _NOT_ENVIRONMENT)
    cwd = _change(a.itself.cwd, b.itself.cwd)
    if cwd is not None:
        differences["cwd"] = cwd.as_json()
    variables = _changed_keys(a.itself.environment, b.itself.environment)
    if variables:
        differences["variables"] = variables
    return differences


def _facets(a: ExecutionRecord, b: ExecutionRecord, wanted: Any) -> dict[str, Any]:
    """Differences by facet; differences within a mapping are listed separately: `limits.nofile`."""
    differences: dict[str, Any] = {}
    for name in sorted(name for name in a.facets.keys() | b.facets.keys() if wanted(name)):
        one, other = a.facets.get(name), b.facets.get(name)
        if isinstance(one, dict) and isinstance(other, dict):
            differences |= {f"{name}.{key}": two for key, two in _changed_keys(one, other).items()}
        elif one != other:
            differences[name] = {"a": one, "b": other}
    return differences


def _changed_keys(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    names = sorted(name for name in a.keys() | b.keys() if a.get(name) != b.get(name))
    return {name: {"a": a.get(name), "b": b.get(name)} for name in names}


def _packages(a: ExecutionRecord, b: ExecutionRecord) -> Iterator[PackageChange]:
    one, other = _package_versions(a), _package_versions(b)
    for manager, name in sorted(one.keys() | other.keys()):
        before, after = one.get((manager, name)), other.get((manager, name))
        if before != after:
            yield PackageChange(manager=manager, name=name, a=before, b=after)


def _package_versions(record: ExecutionRecord) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    packages = record.facets.get("packages")
    for text in packages if isinstance(packages, dict) else ():
        package = parse_purl(text)
        found[package.manager, package.name] = package.version
    return found


def _processes(a: ExecutionRecord, b: ExecutionRecord) -> Iterator[ProcessChange]:
    aligned = align_processes(a, b)

    def named(record: ExecutionRecord, process: Activity) -> ProcessId:
        return process_id(record.execution.number, process.number, process.uid)

    for pair in aligned.pairs[1:]:
        changes = {
            "command": _change(pair.a.command, pair.b.command),
            "exe": _change(pair.a.exe, pair.b.exe),
            "status": _change(exit_code(pair.a), exit_code(pair.b)),
        }
        changed = {name: two for name, two in changes.items() if two is not None}
        if changed and (pair.b.exe is not None or "status" in changed):
            yield ProcessChange(
                a=named(a, pair.a),
                b=named(b, pair.b),
                kind="changed",
                command=tuple(pair.b.command),
                changes=changed,
            )
    for process in aligned.only_a:
        words = tuple(process.command)
        yield ProcessChange(a=named(a, process), b=None, kind="missing", command=words)
    for process in aligned.only_b:
        words = tuple(process.command)
        yield ProcessChange(a=None, b=named(b, process), kind="extra", command=words)


def _inputs(
    a: ExecutionRecord,
    b: ExecutionRecord,
    packages: Sequence[PackageChange],
    contents: ContentComparer,
) -> Iterator[Difference]:
    """Files that existed before and were read. Skip files of packages that are listed already, and
    files of a package that only one execution read."""
    names = EntityNames(a, b)
    one = {names.a(v.locator): v for v in _inputs_read(a)}
    other = {names.b(v.locator): v for v in _inputs_read(b)}
    changed_packages = {(package.manager, package.name) for package in packages}
    for name in sorted(one.keys() | other.keys()):
        before, after = one.get(name), other.get(name)
        owner = (before and before.package) or (after and after.package)
        if before is not None and after is not None:
            if owner is None or _package_key(owner) not in changed_packages:
                yield from contents.difference(name, before, after)
        elif owner is None:
            there = before or after
            assert there is not None
            kind = "extra" if before is None else "missing"
            yield Difference(
                **path_fields(there.locator),
                kind=kind,
                a=before and before.digest,
                b=after and after.digest,
            )


def _inputs_read(record: ExecutionRecord) -> Iterator[Version]:
    """The version of each file and stream that the execution found and read."""
    read = {edge.version for edge in record.used}
    for line in record.lines.values():
        first = line[0]
        known = first.digest is not None and (first.mode is None or stat.S_ISREG(first.mode))
        if first.found and first.key in read and (known or is_stream(first)):
            yield first


def _package_key(package: str) -> tuple[str, str]:
    purl = parse_purl(package)
    return purl.manager, purl.name
