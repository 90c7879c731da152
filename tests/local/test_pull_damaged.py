"""`clew pull` from a damaged remote: it refuses what is damaged, and takes the rest."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.remotes import (
    Remote,
    executions_by_uid,
    verified_executions,
)
from tests.local.test_cmd_pull import record

import clew as interface
from clew.store.remotes import document_name


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(str(tmp_path / "remote"), tmp_path / "remote")


@pytest.fixture
def clew(tmp_path: Path, remote: Remote) -> Project:
    return record(tmp_path / "here", remote)


@pytest.fixture(scope="module")
def pushed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Remote]:
    place = tmp_path_factory.mktemp("pushed")
    remote = Remote(str(place / "remote"), place / "remote")
    return record(place / "here", remote), remote


@pytest.fixture
def other(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    return Project(tmp_path / "there", **graph_in_turn)


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.fixture
def copied(pushed: tuple[Project, Remote], tmp_path: Path) -> Remote:
    """A remote to be damaged."""
    shutil.copytree(pushed[1].path, tmp_path / "copied")
    return Remote(str(tmp_path / "copied"), tmp_path / "copied")


def refused(other: Project, remote: Remote, *ids: str) -> None:
    """What the remote is, is said; nothing here changes."""
    before = verified_executions(other)
    with other.opened() as opened, pytest.raises(interface.ClewError) as told:
        opened.pull(remote.url, ids or None)
    assert told.value.code == "damaged"
    assert told.value.exit_status == 3
    assert remote.url in told.value.message or "events" in told.value.message
    assert "push" in told.value.hint
    assert verified_executions(other) == before


# The tests of `store/remotes` try every kind of damage.
DAMAGE: dict[str, Callable[[Path, Path], object]] = {
    "blocks": lambda pack, table: pack.write_bytes(bytes(pack.stat().st_size)),
    "lost pack": lambda pack, table: pack.unlink(),
    "table": lambda pack, table: flip(table, 50),
}


def test_damage_is_reported_and_repaired(clew: Project, other: Project, remote: Remote) -> None:
    (pack,) = (remote.path / "packs").iterdir()
    pack.write_bytes(bytes(pack.stat().st_size))
    code, message, hint = other.error("pull", remote.url, status=3)
    assert code == "damaged"
    assert f"packs/{pack.name} does not match its digest" in message
    assert hint.startswith(f"delete packs/{pack.name} there, then clew push it there again")
    pack.unlink()
    assert clew.json("push", remote.url)["executions"] == []
    clew("push", remote.url, "e1", "e2")
    other("pull", remote.url)
    assert verified_executions(other)[0] == executions_by_uid(clew)


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_to_one_execution_leaves_the_others(
    pushed: tuple[Project, Remote], other: Project, copied: Remote, how: str
) -> None:
    """Each execution is pushed on its own, so its events are in a pack of its own."""
    shutil.rmtree(copied.path)
    first, second = (found["uid"] for found in pushed[0].json("list")[::-1])
    pushed[0]("push", copied.url, "e2")
    before = set(copied.path.rglob("*"))
    pushed[0]("push", copied.url, "e1")
    new = {path.parent.name: path for path in set(copied.path.rglob("*")) - before}
    DAMAGE[how](new["packs"], new["tables"])
    code, message, hint = other.error("pull", copied.url, status=3)
    assert code == "damaged"
    assert f"{first[:8]} was not pulled: " in message
    assert second[:8] not in message
    assert "push" in hint
    assert [found["uid"] for found in other.json("list")] == [second]
    assert other.json("fsck")["ok"]


@pytest.mark.parametrize(
    "damage",
    [lambda file: flip(file, 20), lambda file: os.truncate(file, 100)],
    ids=["flip", "cut"],
)
def test_a_damaged_document_is_left_out_and_repaired(
    pushed: tuple[Project, Remote],
    other: Project,
    copied: Remote,
    damage: Callable[[Path], object],
) -> None:
    clew, _ = pushed
    first, second = (found["uid"] for found in clew.json("list")[::-1])
    (document,) = (copied.path / "executions").glob(f"{first}.*")
    damage(document)
    name = f"executions/{document.name}"
    listed = other("pull", copied.url, "--list")
    assert second[:8] in listed.stdout
    assert first[:8] not in listed.stdout
    assert f"{name} is damaged and was left out" in listed.stderr
    assert other.json("pull", copied.url, "e2")["remarks"] == [
        f"{name} is damaged and was left out"
    ]
    other("rm", "--yes", "e1")
    for ids in ([], [first], ["clean"]):
        code, message, hint = other.error("pull", copied.url, *ids, status=3)
        assert code == "damaged"
        assert name in message
        assert hint.startswith("clew push it there again")
        assert [found["uid"] for found in other.json("list")] == [second]
    assert clew.json("push", copied.url, "e1")["bytes"] > 0
    assert clew.json("push", copied.url, "e1")["bytes"] == 0
    other("pull", copied.url)
    assert verified_executions(other)[0] == executions_by_uid(clew)


def test_a_malformed_document_with_a_valid_digest(
    pushed: tuple[Project, Remote], other: Project, copied: Remote
) -> None:
    """Whole by its digest, and yet not what a Clew writes."""
    (first, second) = executions_by_uid(pushed[0])
    own = next(p for p in (copied.path / "executions").iterdir() if p.name.startswith(first))
    true = json.loads(own.read_bytes())
    of_another = {**true["execution"], "uid": second}
    for lie in (
        b"[]",
        b"\xff",
        json.dumps({**true, "execution": of_another}).encode(),
        json.dumps({**true, "execution": {"uid": first}}).encode(),
        json.dumps({**true, "execution": true["execution"] | {"started": "x"}}).encode(),
    ):
        path = copied.path / "executions" / document_name(first, lie)
        path.write_bytes(lie)
        assert other.json("pull", copied.url, first)["remarks"] == [
            f"executions/{path.name} is damaged and was left out"
        ]
        path.unlink()
    other("rm", "--yes", "e1")
    lies = [
        (first, json.dumps({**true, "events": "blake3:" + "0" * 64}).encode()),
        (first, json.dumps({**true, "events": "nothing"}).encode()),
        (second, json.dumps({**true, "execution": of_another}).encode()),
    ]
    for uid, lie in lies:
        path = copied.path / "executions" / document_name(uid, lie)
        path.write_bytes(lie)
        refused(other, copied, uid)
        path.unlink()
