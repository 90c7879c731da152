"""Which Pods, containers and paths a node watches, and whose content it stores: decided without IO.

A rule is a list of conditions that must all hold; of several rules one is enough. The conditions
are those of CamFlow, in the words of Kubernetes. A container that no rule selects is not marked, so
nothing about it changes.
"""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from clew.errors import UsageError

CLAIM, EMPTY_DIR, HOST_PATH = "claim", "emptyDir", "hostPath"
_KINDS = (CLAIM, EMPTY_DIR, HOST_PATH)
_SCHEMES = {"pvc": CLAIM, "emptydir": EMPTY_DIR, "file": HOST_PATH}
MAX_POLICY_BYTES = 1 << 20
DEFAULT_HASH_LIMIT = 64 << 30


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Conditions; one that is empty always holds."""

    namespaces: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    paths: tuple[str, ...] = ()
    """Globs of paths within a volume: `*` stays in a directory, `**` does not."""
    volumes: tuple[str, ...] = (CLAIM,)
    """Kinds of volumes."""
    cgroups: tuple[str, ...] = ()
    uids: tuple[int, ...] = ()
    """Of the container's first process."""
    gids: tuple[int, ...] = ()
    addresses: tuple[str, ...] = ()
    """Addresses of the Pod: `10.1.2.3` or `10.1.0.0/16`."""
    contexts: tuple[str, ...] = ()
    """Globs of the security context: `privileged`, or the label of SELinux or AppArmor."""


class ContentRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content that is stored, so that old versions can be restored."""

    namespaces: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    max_bytes: int = 1 << 30


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration of a node agent."""

    select: tuple[Rule, ...] = (Rule(),)
    exclude: tuple[Rule, ...] = (Rule(namespaces=("kube-system",)),)
    content: tuple[ContentRule, ...] = ()
    hash_limit: int = DEFAULT_HASH_LIMIT
    """Bytes of a file above which it is not hashed."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A container, as far as rules look at it. None: that is not known."""

    namespace: str
    pod: str
    container: str
    labels: Mapping[str, str] = {}
    addresses: Sequence[str] | None = ()
    cgroup: str = ""
    uid: int | None = 0
    gid: int | None = 0
    contexts: Sequence[str] | None = ()


def parse_policy(document: bytes) -> Policy:
    """Read a policy in TOML; UsageError if it is not one."""
    if len(document) > MAX_POLICY_BYTES:
        raise UsageError(f"the policy has more than {MAX_POLICY_BYTES} bytes")
    try:
        policy = msgspec.toml.decode(document, type=Policy)
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"the policy of the node agent: {error}", hint="docs/reference/node-agent.md"
        ) from error
    except ValueError as error:
        raise UsageError(f"the policy of the node agent is not TOML: {error}") from error
    for rule in (*policy.select, *policy.exclude):
        _check_rule(rule)
    return policy


def selects(policy: Policy, subject: Subject, locator: str) -> bool:
    """Whether any path on a volume of this container may be watched. What is not known of the
    container excludes it from nothing."""
    if any(not rule.paths and _matches(rule, subject, locator) for rule in policy.exclude):
        return False
    return any(_matches(rule, subject, locator, unknown=True) for rule in policy.select)


def selects_path(policy: Policy, subject: Subject, locator: str, path: bytes) -> bool:
    """Whether accesses to this path are recorded; `selects` holds."""
    for rule in policy.exclude:
        if rule.paths and _matches_path(rule.paths, path) and _matches(rule, subject, locator):
            return False
    return any(
        _matches_path(rule.paths, path) and _matches(rule, subject, locator)
        for rule in policy.select
    )


def selects_requests(policy: Policy, containers: Sequence[Subject]) -> bool:
    """Whether the requests of a Pod, with these containers, may be read. What a rule says of
    volumes, paths and processes does not count."""
    for rule in policy.exclude:
        if _excludes_pods(rule) and any(_matches_pod(rule, one) for one in containers):
            return False
    return any(_matches_pod(rule, one) for rule in policy.select for one in containers)


def selects_same_paths(policy: Policy) -> bool:
    """Whether the paths of a volume that are watched are the same in all watched containers."""
    limiting = [rule for rule in policy.exclude if rule.paths]
    if any(rule.paths for rule in policy.select):
        limiting += policy.select
    return all(rule == Rule(paths=rule.paths, volumes=rule.volumes) for rule in limiting)


def stores(policy: Policy, namespace: str, path: bytes, size: int) -> bool:
    """Whether the content of a file is stored."""
    return any(
        size <= rule.max_bytes
        and _matches_name(rule.namespaces, namespace)
        and _matches_path(rule.paths, path)
        for rule in policy.content
    )


def _check_rule(rule: Rule) -> None:
    for kind in rule.volumes:
        if kind not in _KINDS:
            raise UsageError(f"{kind[:80]!r} is not a kind of volume", hint=", ".join(_KINDS))
    for address in rule.addresses:
        try:
            ipaddress.ip_network(address, strict=False)
        except ValueError as error:
            raise UsageError(f"{address[:80]!r} is not an address: {error}") from error


def _matches(rule: Rule, subject: Subject, locator: str, *, unknown: bool = False) -> bool:
    """`unknown`: whether a condition holds for what is not known."""
    uid, gid, contexts = subject.uid, subject.gid, subject.contexts
    return (
        _SCHEMES.get(locator.partition(":")[0]) in rule.volumes
        and _matches_pod(rule, subject, unknown=unknown)
        and (not rule.uids or (unknown if uid is None else uid in rule.uids))
        and (not rule.gids or (unknown if gid is None else gid in rule.gids))
        and _matches_name(rule.cgroups, subject.cgroup)
        and (
            not rule.contexts
            or (unknown if contexts is None else any(_is_context(rule, one) for one in contexts))
        )
    )


def _matches_pod(rule: Rule, subject: Subject, *, unknown: bool = False) -> bool:
    """The conditions that the Pod itself decides."""
    addresses = subject.addresses
    return (
        _matches_name(rule.namespaces, subject.namespace)
        and _matches_name(rule.pods, subject.pod)
        and _matches_name(rule.containers, subject.container)
        and all(
            name in subject.labels and _matches_name((value,), subject.labels[name])
            for name, value in rule.labels.items()
        )
        and (
            not rule.addresses
            or (unknown if addresses is None else any(_is_in(rule, one) for one in addresses))
        )
    )


def _excludes_pods(rule: Rule) -> bool:
    """Whether a rule excludes whole Pods, not some of their paths, volumes or containers."""
    narrow = rule.paths, rule.containers, rule.cgroups, rule.uids, rule.gids, rule.contexts
    return CLAIM in rule.volumes and not any(narrow)


def _is_context(rule: Rule, context: str) -> bool:
    return _matches_name(rule.contexts, context)


def _matches_name(globs: Sequence[str], name: str) -> bool:
    return not globs or any(_pattern(glob, "").fullmatch(name) for glob in globs)


def _matches_path(globs: Sequence[str], path: bytes) -> bool:
    text = path.decode(errors="surrogateescape")
    return not globs or any(_pattern(glob, "/").fullmatch(text) for glob in globs)


def _is_in(rule: Rule, address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(found in ipaddress.ip_network(one, strict=False) for one in rule.addresses)


@lru_cache(maxsize=1024)
def _pattern(glob: str, separator: str) -> re.Pattern[str]:
    """A glob as an expression. A path without a leading `/` matches at any depth."""
    single = f"[^{separator}]" if separator else "."
    prefix = "(?:.*/)?" if separator and not glob.startswith("/") else ""
    parts = re.split(r"(\*\*/?|\*|\?)", glob)
    words = {"**/": "(?:.*/)?", "**": ".*", "*": f"{single}*", "?": single}
    return re.compile(prefix + "".join(words.get(p, re.escape(p)) for p in parts), re.DOTALL)
