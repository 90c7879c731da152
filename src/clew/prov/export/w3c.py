"""W3C PROV: PROV-JSON and PROV-N.

A version is an entity, a process (and the execution itself) an activity, the user an agent.
`how` a version was used or made is the relation's role. A version made by renaming or linking is
derived from the one under the old name; any other from each of the user's own files its maker
had used by then, unless these pairs are too many to be worth drawing. A file that was moved or
copied outside Clew is derived from the earlier version with the same bytes, with the type
`clew:SameContent`: this derivation is inferred, not observed.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clew.prov.event_numbers import MOVES
from clew.prov.graph import Graph
from clew.prov.queries.execution_record import Activity, ExecutionRecord, Version, load_record
from clew.prov.queries.formats import (
    execution_id,
    format_time,
    locator_kind,
    path_fields,
    process_id,
    version_id,
)
from clew.prov.queries.lineage import lineage_sql
from clew.prov.queries.lineage.content_links import find_copied_versions
from clew.prov.queries.pipelines.runs import list_run_executions
from clew.prov.queries.show import classify_locator
from clew.prov.row_keys import digest_text

NAMESPACE = "urn:clew:"
MOST_DERIVATIONS = 10_000
"""The limit for one process; beyond it `used` and `wasGeneratedBy` say the same, less directly."""

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_ARGUMENTS = {
    "entity": (),
    "activity": ("prov:startTime", "prov:endTime"),
    "agent": (),
    "used": ("prov:activity", "prov:entity", "prov:time"),
    "wasGeneratedBy": ("prov:entity", "prov:activity", "prov:time"),
    "wasInvalidatedBy": ("prov:entity", "prov:activity", "prov:time"),
    "wasInformedBy": ("prov:informed", "prov:informant"),
    "wasDerivedFrom": ("prov:generatedEntity", "prov:usedEntity"),
    "wasAssociatedWith": ("prov:activity", "prov:agent", "prov:plan"),
    "wasStartedBy": ("prov:activity", "prov:trigger", "prov:starter", "prov:time"),
}


class Name(NamedTuple):
    """A qualified name."""

    text: str


Value = str | int | bool | Name


class Statement(NamedTuple):
    """One PROV statement: `name` for an element, `arguments` in the order PROV-N has them."""

    kind: str
    name: str
    arguments: tuple[str | None, ...]
    attributes: list[tuple[str, Value]]


def export_prov_json(graph: Graph, text: str) -> bytes:
    """The execution, or all executions of a pipeline run, as PROV-JSON."""
    return write_prov_json(_list_all_statements(graph, text))


def export_prov_n(graph: Graph, text: str) -> bytes:
    """The execution, or all executions of a pipeline run, as PROV-N."""
    return write_prov_n(_list_all_statements(graph, text))


def write_prov_json(statements: Iterable[Statement]) -> bytes:
    document: dict[str, dict[str, object]] = {"prefix": {"clew": NAMESPACE}}
    for number, statement in enumerate(statements):
        fields: dict[str, object] = {}
        for field, value in zip(_ARGUMENTS[statement.kind], statement.arguments, strict=True):
            if value is not None:
                fields[field] = value
        for field, attribute in statement.attributes:
            fields[field] = _json(attribute)
        key = statement.name or f"_:id{number}"
        document.setdefault(statement.kind, {})[key] = fields
    return json.dumps(document, ensure_ascii=False, indent=1).encode() + b"\n"


def write_prov_n(statements: Iterable[Statement]) -> bytes:
    lines = ["document", f"  prefix clew <{NAMESPACE}>", ""]
    for statement in statements:
        words = [statement.name] if statement.name else []
        words += [argument or "-" for argument in statement.arguments]
        if statement.attributes:
            pairs = (f"{field}={_notation(value)}" for field, value in statement.attributes)
            words.append(f"[{', '.join(pairs)}]")
        lines.append(f"  {statement.kind}({', '.join(words)})")
    return "\n".join([*lines, "endDocument"]).encode() + b"\n"


def _list_all_statements(graph: Graph, text: str) -> Iterator[Statement]:
    """Executions of one run share versions, agents and programs: each is stated once."""
    stated = set()
    for execution in list_run_executions(graph, text) or (text,):
        for statement in _list_statements(graph, execution):
            if not statement.name or (statement.kind, statement.name) not in stated:
                stated.add((statement.kind, statement.name))
                yield statement


def _list_statements(graph: Graph, text: str) -> Iterator[Statement]:
    record = load_record(graph, text)
    yield from build_statements(record)
    found = (version.key for version in record.versions.values() if version.found)
    described: set[int] = set()
    for key, (source, link) in find_copied_versions(graph, found).items():
        if source.key not in described:
            described.add(source.key)
            yield Statement("entity", name_entity(source.key), (), _source_attributes(source))
        attributes: list[tuple[str, Value]] = [
            ("prov:type", Name("clew:SameContent")),
            ("clew:observed", False),
            *((f"clew:{name}", value) for name, value in link.attributes.items()),
        ]
        yield Statement(
            "wasDerivedFrom", "", (name_entity(key), name_entity(source.key)), attributes
        )


def _source_attributes(version: lineage_sql.Version) -> list[tuple[str, Value]]:
    return [
        ("prov:type", Name(type_name(locator_kind(version.locator)))),
        ("prov:label", path_fields(version.locator)["path"]),
        ("prov:location", version.locator),
        ("clew:version", version_id(version.number, version.locator, version.ordinal)),
        ("clew:digest", digest_text(version.digest) or ""),
    ]


def build_statements(record: ExecutionRecord) -> Iterator[Statement]:
    """The PROV statements about one execution."""
    number = record.execution.number
    for version in record.versions.values():
        yield Statement(
            "entity", name_entity(version.key), (), _version_attributes(number, version)
        )
    for agent in dict.fromkeys(a.agent for a in record.activities.values() if a.agent):
        yield describe_agent(agent)
    for activity in record.activities.values():
        yield from _activity_statements(record, activity)
    for edge in record.used:
        yield _edge(
            "used", _activity(record, edge.activity), name_entity(edge.version), edge.at, edge.how
        )
    for kind, edges in (
        ("wasGeneratedBy", record.generated),
        ("wasInvalidatedBy", record.invalidated),
    ):
        for edge in edges:
            maker = _activity(record, edge.activity)
            yield _edge(kind, name_entity(edge.version), maker, edge.at, edge.how)
    for receiver, sender, _, via in record.informed:
        names = (_activity(record, receiver), _activity(record, sender))
        yield Statement("wasInformedBy", "", names, [("clew:via", via)])
    for made, source in find_derivations(record):
        yield Statement("wasDerivedFrom", "", (name_entity(made), name_entity(source)), [])


def describe_agent(agent: str) -> Statement:
    """A user, or an account of a program in a cluster, such as `system:serviceaccount:…`."""
    kind = "prov:SoftwareAgent" if agent.startswith("system:") else "prov:Person"
    attributes: list[tuple[str, Value]] = [("prov:type", Name(kind)), ("prov:label", agent)]
    return Statement("agent", _name("agent", agent), (), attributes)


def associate_agent(activity: str, agent: str) -> Statement:
    """`activity`: its name in the document."""
    return Statement("wasAssociatedWith", "", (activity, _name("agent", agent), None), [])


def find_derivations(record: ExecutionRecord) -> Iterator[tuple[int, int]]:
    """(version, version it is made from): as far as that is certain, or worth drawing."""
    inputs: dict[int, list[tuple[int, int, str]]] = {}
    for edge in record.used:
        version = record.versions[edge.version]
        kind = classify_locator(version.locator, version.package, version.mode)
        if kind not in ("package", "system"):
            inputs.setdefault(edge.activity, []).append((edge.at, edge.version, edge.how))
    outputs: dict[int, int] = {}
    for edge in record.generated:
        outputs[edge.activity] = outputs.get(edge.activity, 0) + 1
    for edge in record.generated:
        used = inputs.get(edge.activity, [])
        if edge.how in MOVES:
            found = {v for at, v, how in used if how == edge.how and at == edge.at}
        elif len(used) * outputs[edge.activity] > MOST_DERIVATIONS:
            continue
        else:
            found = {v for _, v, how in used if how not in MOVES}
        for source in sorted(found - {edge.version}):
            yield edge.version, source


def _activity_statements(record: ExecutionRecord, activity: Activity) -> Iterator[Statement]:
    number = record.execution.number
    own = activity.key == record.execution.key
    label = execution_id(number) if own else process_id(number, activity.number, activity.uid)
    attributes: list[tuple[str, Value]] = [
        ("prov:type", Name(type_name(activity.kind))),
        ("prov:label", " ".join(activity.command) or label),
        ("clew:id", label),
    ]
    for name, value in (("exe", activity.exe), ("cwd", activity.cwd), ("status", activity.status)):
        if value is not None:
            attributes.append((f"clew:{name}", value))
    name = _activity(record, activity.key)
    times = (format_time(activity.started), format_time(activity.ended))
    yield Statement("activity", name, times, attributes)
    if activity.agent:
        yield associate_agent(name, activity.agent)
    if activity.parent in record.activities:
        parent = _activity(record, activity.parent)
        yield Statement("wasStartedBy", "", (name, None, parent, format_time(activity.started)), [])


def _version_attributes(number: int, version: Version) -> list[tuple[str, Value]]:
    attributes: list[tuple[str, Value]] = [
        ("prov:type", Name(type_name(locator_kind(version.locator)))),
        ("prov:label", path_fields(version.locator)["path"]),
        ("prov:location", version.locator),
        ("clew:version", version_id(number, version.locator, version.ordinal)),
        ("clew:found", version.found),
    ]
    for name in ("digest", "size", "mode", "mtime", "package"):
        value = getattr(version, name)
        if value is not None:
            attributes.append((f"clew:{name}", value))
    return attributes


def _edge(kind: str, first: str, second: str, at: int, how: str) -> Statement:
    return Statement(kind, "", (first, second, format_time(at)), [("prov:role", how)])


def name_entity(key: int) -> str:
    return f"clew:v{key & (2**64 - 1):016x}"


def _activity(record: ExecutionRecord, key: int) -> str:
    return name_activity(record.activities[key].uid)


def name_activity(uid: str) -> str:
    return _name("a", uid)


def _name(kind: str, text: str) -> str:
    """A local name without characters that PROV-N gives a meaning; others are written as hex."""
    return f"clew:{kind}-{text}" if _SAFE.fullmatch(text) else f"clew:{kind}_{text.encode().hex()}"


def type_name(kind: str) -> str:
    """The class of an entity or activity; what cannot be a name is of none in particular."""
    return f"clew:{kind.capitalize() if _SAFE.fullmatch(kind) else 'Other'}"


def _json(value: Value) -> object:
    if isinstance(value, Name):
        return {"$": value.text, "type": "prov:QUALIFIED_NAME"}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"$": str(value), "type": "xsd:long"}
    return value


def _notation(value: Value) -> str:
    if isinstance(value, Name):
        return f"'{value.text}'"
    if isinstance(value, bool):
        return f'"{str(value).lower()}" %% xsd:boolean'
    if isinstance(value, int):
        return f'"{value}" %% xsd:long'
    for raw, written in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        value = value.replace(raw, written)
    return f'"{value}"'
