"""Rules select containers, volumes and paths; content rules select what is stored."""

import msgspec
import pytest

from clew.errors import UsageError
from clew.witness.volumes.selection import (
    Policy,
    Rule,
    Subject,
    parse_policy,
    selects,
    selects_path,
    selects_same_paths,
    stores,
)

SUBJECT = Subject(
    namespace="ml-team",
    pod="train-0",
    container="main",
    labels={"app": "train"},
    addresses=["10.1.2.3"],
    cgroup="/sys/fs/cgroup/pids/kubepods/burstable/pod1/2",
    uid=1000,
    gid=100,
    contexts=["privileged", "clew-profile (enforce)"],
)
VOLUME = "pvc://ml-team/data@pv-1"


@pytest.mark.parametrize(
    ("rule", "chosen"),
    [
        (Rule(), True),
        (Rule(namespaces=("ml-*",)), True),
        (Rule(namespaces=("ml",)), False),
        (Rule(pods=("train-?",), containers=("main",)), True),
        (Rule(labels={"app": "tr*"}), True),
        (Rule(labels={"app": "train", "tier": "*"}), False),
        (Rule(cgroups=("*/burstable/*",)), True),
        (Rule(cgroups=("*/guaranteed/*",)), False),
        (Rule(uids=(0, 1000), gids=(100,)), True),
        (Rule(gids=(0,)), False),
        (Rule(addresses=("10.1.0.0/16",)), True),
        (Rule(addresses=("10.2.0.0/16", "fe80::/10")), False),
        (Rule(contexts=("clew-profile*",)), True),
        (Rule(contexts=("unconfined",)), False),
        (Rule(volumes=("emptyDir",)), False),
    ],
)
def test_a_rule_selects_by_each_of_its_conditions(rule: Rule, chosen: bool) -> None:
    assert selects(Policy(select=(rule,), exclude=()), SUBJECT, VOLUME) is chosen


@pytest.mark.parametrize(
    "rule",
    [Rule(uids=(5,)), Rule(gids=(5,)), Rule(addresses=("10.9.9.9",)), Rule(contexts=("x*",))],
)
def test_what_is_not_known_of_a_container_leaves_it_selected(rule: Rule) -> None:
    unknown = msgspec.structs.replace(SUBJECT, uid=None, gid=None, addresses=None, contexts=None)
    assert selects(Policy(select=(rule,), exclude=()), unknown, VOLUME)
    assert selects(Policy(exclude=(rule,)), unknown, VOLUME)
    assert not selects(Policy(select=(rule,), exclude=()), SUBJECT, VOLUME)


def test_an_exclusion_wins_and_one_with_paths_excludes_only_these() -> None:
    whole = Policy(exclude=(Rule(namespaces=("ml-team",)),))
    assert not selects(whole, SUBJECT, VOLUME)
    some = Policy(exclude=(Rule(paths=("*.log", "/cache/**")),))
    assert selects(some, SUBJECT, VOLUME)
    recorded = {
        path: selects_path(some, SUBJECT, VOLUME, path)
        for path in (b"/a/b.log", b"/cache/x/y", b"/caches/x", b"/a.csv", b"/\xff\n.log")
    }
    assert recorded == {
        b"/a/b.log": False,
        b"/cache/x/y": False,
        b"/caches/x": True,
        b"/a.csv": True,
        b"/\xff\n.log": False,
    }


def test_content_is_stored_by_namespace_path_and_size() -> None:
    policy = parse_policy(
        b'[[content]]\nnamespaces = ["ml-*"]\npaths = ["/raw/*.csv"]\nmax_bytes = 10'
    )
    assert stores(policy, "ml-team", b"/raw/a.csv", 10)
    assert not stores(policy, "ml-team", b"/raw/a.csv", 11)
    assert not stores(policy, "ml-team", b"/raw/deep/a.csv", 1)
    assert not stores(policy, "other", b"/raw/a.csv", 1)


@pytest.mark.parametrize(
    "text",
    [
        b"[[select]]\nnamespace = 1",
        b"[[select]]\nnamespaces = 1",
        b'[[select]]\naddresses = ["300.0.0.1"]',
        b'[[select]]\nvolumes = ["disk"]',
        b"not toml",
        b"\xff",
        b"#" * (1 << 21),
    ],
)
def test_a_policy_with_a_mistake_is_refused(text: bytes) -> None:
    with pytest.raises(UsageError):
        parse_policy(text)


def test_containers_are_watched_at_the_same_paths_unless_paths_depend_on_them() -> None:
    csv, logs = Rule(paths=("*.csv",)), Rule(paths=("*.log",))
    assert selects_same_paths(Policy())
    assert selects_same_paths(Policy(select=(csv,), exclude=(logs,)))
    assert not selects_same_paths(Policy(select=(csv, Rule(namespaces=("ml",)))))
    assert not selects_same_paths(Policy(exclude=(Rule(namespaces=("ml",), paths=("*.log",)),)))
