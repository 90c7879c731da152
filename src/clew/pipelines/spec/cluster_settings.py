"""The settings of a task that only a cluster can act on: where its Pod may run, and as what.

They are checked when the pipeline is read. Structures that are inputs of the task are checked when
it starts. The document has no field for privileges, for the node's directories or its network: what
is not listed here is refused, and what is, the namespace may still forbid.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from clew.kube.quantities import InvalidQuantity, parse_quantity
from clew.pipelines.spec.document_part import Part

NAMES = (
    "imagePullPolicy", "imagePullSecret", "nodeAffinity", "nodeSelector", "podAffinity",
    "podMetadata", "tolerations", "securityContext", "enabledSharedMemory",
)  # fmt: skip
"""The fields of an executor's settings that are parsed here."""
INPUTS = ("nodeSelectorJson", "nodeAffinityJson", "tolerationJson", "secretNameParameter")
"""Fields within these that name an input of the task, or have a constant."""
_POLICIES = ("Always", "Never", "IfNotPresent")
_EFFECTS = ("", "NoSchedule", "PreferNoSchedule", "NoExecute")
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_OWN_LABELS = ("clew.dev/run", "clew.dev/task", "clew.dev/task-path")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_MOST = 100
"""Entries of a list or mapping."""
_MAX_ID = 2**31 - 1

Fill = Callable[[Any], Any]
"""Replaces placeholders."""


class ClusterSettings(Struct, frozen=True, kw_only=True):
    """In the words of Kubernetes."""

    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    pull_policy: str = ""
    pull_secrets: tuple[str, ...] = ()
    node_selector: Mapping[str, str] = {}
    tolerations: tuple[Mapping[str, Any], ...] = ()
    affinity: Mapping[str, Any] = {}
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    shared_memory: str | None = None
    """The limit of /dev/shm, empty for none; None is the default of the node."""


def build_settings(part: Part, fill: Fill) -> ClusterSettings:
    """The settings in the fields `NAMES` of an executor, whose texts may have placeholders.
    InvalidPipeline names the field that is wrong."""
    metadata, security = part.part("podMetadata"), part.part("securityContext")
    metadata.allow_only("labels", "annotations")
    security.allow_only("runAsUser", "runAsGroup", "runAsNonRoot")
    return ClusterSettings(
        labels=_read_texts(metadata, "labels"),
        annotations=_read_texts(metadata, "annotations"),
        pull_policy=_read_choice(part, "imagePullPolicy", ("", *_POLICIES)),
        pull_secrets=tuple(_build_pull_secrets(part, fill)),
        node_selector=_build_node_selector(part.part("nodeSelector"), fill),
        tolerations=tuple(_build_tolerations(part, fill)),
        affinity=_build_node_affinity(part, fill) | _build_pod_affinity(part),
        run_as_user=_read_id(security, "runAsUser"),
        run_as_group=_read_id(security, "runAsGroup"),
        run_as_non_root=_read_flag(security, "runAsNonRoot"),
        shared_memory=_read_shared_memory(part),
    )


def _read_shared_memory(part: Part) -> str | None:
    if "enabledSharedMemory" not in part:
        return None
    memory = part.part("enabledSharedMemory")
    memory.allow_only("volumeName", "size")
    return _read_text(memory, "size")


def _build_pull_secrets(part: Part, fill: Fill) -> Iterator[str]:
    for one in list_parts(part, "imagePullSecret"):
        one.allow_only("secretName", "secretNameParameter")
        field = "secretNameParameter" if "secretNameParameter" in one else "secretName"
        if name := fill(one.string(field)):
            yield str(name)


def _build_node_selector(part: Part, fill: Fill) -> Mapping[str, str]:
    part.allow_only("labels", "nodeSelectorJson")
    given = _read_structure(part, "nodeSelectorJson", fill)
    if given is None:
        return _read_texts(part, "labels")
    inside = Part(given, f"{part.location}.nodeSelectorJson")
    return {name: _read_text(inside, name) for name in inside.names()}


def _build_tolerations(part: Part, fill: Fill) -> Iterator[Mapping[str, Any]]:
    for one in list_parts(part, "tolerations"):
        if "tolerationJson" not in one:
            yield _build_toleration(one)
            continue
        one.allow_only("tolerationJson")
        given = _read_structure(one, "tolerationJson", fill)
        found = given if isinstance(given, list) else [given] if given else []
        inside = Part({"tolerationJson": found}, one.location)
        yield from map(_build_toleration, list_parts(inside, "tolerationJson"))


def _build_toleration(part: Part) -> Mapping[str, Any]:
    part.allow_only("key", "operator", "value", "effect", "tolerationSeconds")
    key = _read_text(part, "key")
    operator = _read_choice(part, "operator", ("", "Equal", "Exists"))
    if not key and operator != "Exists":
        raise part.error("operator", "must be Exists if no key is given")
    made: dict[str, Any] = {
        "key": key,
        "operator": operator,
        "value": _read_text(part, "value"),
        "effect": _read_choice(part, "effect", _EFFECTS),
    }
    made = {name: value for name, value in made.items() if value}
    if (seconds := _read_number(part, "tolerationSeconds")) is not None:
        made["tolerationSeconds"] = seconds
    return made


# -- affinity


def _build_node_affinity(part: Part, fill: Fill) -> dict[str, Any]:
    """Terms with a weight are preferred; of those without, one must match."""
    required: list[Any] = []
    preferred: list[Any] = []
    for one in list_parts(part, "nodeAffinity"):
        if "nodeAffinityJson" in one:
            one.allow_only("nodeAffinityJson")
            given = _read_structure(one, "nodeAffinityJson", fill)
            inside = Part(given, f"{one.location}.nodeAffinityJson")
            inside.allow_only(_REQUIRED, _PREFERRED)
            terms = inside.part(_REQUIRED)
            terms.allow_only("nodeSelectorTerms")
            required += map(_build_node_term, list_parts(terms, "nodeSelectorTerms"))
            preferred += map(_build_preference, list_parts(inside, _PREFERRED))
            continue
        one.allow_only("matchExpressions", "matchFields", "weight")
        term = _build_node_term(one, "weight")
        if "weight" in one:
            preferred.append({"weight": _read_weight(one), "preference": term})
        elif term:
            required.append(term)
    made: dict[str, Any] = {}
    if required:
        made[_REQUIRED] = {"nodeSelectorTerms": required}
    if preferred:
        made[_PREFERRED] = preferred
    return {"nodeAffinity": made} if made else {}


def _build_preference(part: Part) -> dict[str, Any]:
    part.allow_only("weight", "preference")
    return {
        "weight": _read_weight(part),
        "preference": _build_node_term(part.part("preference")),
    }


def _build_node_term(part: Part, *others: str) -> dict[str, Any]:
    part.allow_only("matchExpressions", "matchFields", *others)
    made = {
        name: _build_requirements(part, name, _NODE_OPERATORS)
        for name in ("matchExpressions", "matchFields")
    }
    return {name: found for name, found in made.items() if found}


def _build_pod_affinity(part: Part) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for one in list_parts(part, "podAffinity"):
        one.allow_only(
            "matchPodExpressions", "matchPodLabels", "topologyKey", "namespaces",
            "matchNamespaceExpressions", "matchNamespaceLabels", "weight", "anti",
        )  # fmt: skip
        term: dict[str, Any] = {
            "topologyKey": one.string("topologyKey"),
            "labelSelector": _build_selector(one, "matchPod"),
            "namespaceSelector": _build_selector(one, "matchNamespace"),
            "namespaces": one.strings("namespaces"),
        }
        term = {name: found for name, found in term.items() if found}
        kind = made.setdefault("podAntiAffinity" if _read_flag(one, "anti") else "podAffinity", {})
        if "weight" in one:
            weighted = {"weight": _read_weight(one), "podAffinityTerm": term}
            kind.setdefault(_PREFERRED, []).append(weighted)
        else:
            kind.setdefault(_REQUIRED, []).append(term)
    return made


def _build_selector(part: Part, prefix: str) -> dict[str, Any]:
    labels = _read_texts(part, f"{prefix}Labels")
    expressions = _build_requirements(part, f"{prefix}Expressions", _LABEL_OPERATORS)
    made = {"matchLabels": dict(labels), "matchExpressions": expressions}
    return {name: found for name, found in made.items() if found}


def _build_requirements(part: Part, name: str, operators: tuple[str, ...]) -> list[Any]:
    made = []
    for one in list_parts(part, name):
        one.allow_only("key", "operator", "values")
        found: dict[str, Any] = {
            "key": one.string("key"),
            "operator": _read_choice(one, "operator", operators),
        }
        if values := one.strings("values"):
            found["values"] = values
        made.append(found)
    return made


def check_volume(part: Part) -> None:
    """Check the settings of an empty directory, or of a volume that is made for one Pod."""
    _read_choice(part, "medium", ("", "Memory"))
    for name in ("sizeLimit", "size"):
        try:
            if size := _read_text(part, name):
                parse_quantity(size)
        except InvalidQuantity as error:
            raise part.error(name, str(error)) from error
    for mode in part.strings("accessModes"):
        if mode not in _ACCESS_MODES:
            raise part.error("accessModes", f"{mode[:40]} is not one of {', '.join(_ACCESS_MODES)}")
    _read_text(part, "storageClassName")
    metadata = part.part("metadata")
    metadata.allow_only("labels", "annotations")
    _read_texts(metadata, "labels")
    _read_texts(metadata, "annotations")


# -- values


def list_parts(part: Part, name: str) -> Iterator[Part]:
    """The mappings in a list of bounded length."""
    found = part.get(name) or []
    if not isinstance(found, list):
        raise part.error(name, "is not a list")
    if len(found) > _MOST:
        raise part.error(name, f"has more than {_MOST} entries")
    for number, one in enumerate(found):
        yield Part(one, f"{part.location}.{name}[{number}]")


def _read_structure(part: Part, name: str, fill: Fill) -> Any:
    """The value of an input: a structure, or its JSON text."""
    value = fill(part.get(name))
    if isinstance(value, str) and value:
        try:
            value = json.loads(value)
        except ValueError as error:
            raise part.error(name, "is not JSON") from error
    return value or None


def _read_texts(part: Part, name: str) -> Mapping[str, str]:
    inside = part.part(name)
    if len(inside.names()) > _MOST:
        raise part.error(name, f"has more than {_MOST} entries")
    for own in _OWN_LABELS:
        if own in inside:
            raise inside.error(own, "is set by Clew")
    return {key: _read_text(inside, key) for key in inside.names()}


def _read_text(part: Part, name: str) -> str:
    value = part.get(name, "")
    if not isinstance(value, str):
        raise part.error(name, "is not a string")
    return value


def _read_choice(part: Part, name: str, choices: tuple[str, ...]) -> str:
    value = _read_text(part, name)
    if value not in choices:
        known = ", ".join(filter(None, choices))
        raise part.error(name, f"{value[:40] or 'it'} is not one of {known}")
    return value


def _read_flag(part: Part, name: str) -> bool | None:
    value = part.get(name)
    if value is not None and not isinstance(value, bool):
        raise part.error(name, "is neither true nor false")
    return value


def _read_number(part: Part, name: str) -> int | None:
    """protobuf writes large numbers as texts."""
    value = part.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | str | float):
        raise part.error(name, "is not a whole number")
    try:
        number = int(value)
    except (ValueError, OverflowError) as error:
        raise part.error(name, "is not a whole number") from error
    if number != float(value) or abs(number) >= 2**63:
        raise part.error(name, "is not a whole number")
    return number


def _read_id(part: Part, name: str) -> int | None:
    number = _read_number(part, name)
    if number is not None and not 0 <= number <= _MAX_ID:
        raise part.error(name, f"is not between 0 and {_MAX_ID}")
    return number


def _read_weight(part: Part) -> int:
    number = _read_number(part, "weight")
    if number is None or not 1 <= number <= 100:
        raise part.error("weight", "is not between 1 and 100")
    return number
