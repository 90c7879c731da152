"""Records that were forged: what pull and ingest refuse, and what they never change."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.driver import Project
from tests.local.remotes import Remote, directory_remote, project_with_remote, verified_executions
from tests.unit.prov.execution_builder import digest

from clew.api.local.project import LocalProject
from clew.api.local.remotes.push_pull import LocalEndpoint, push
from clew.errors import Rejected
from clew.prov.events import (
    AnyEvent,
    Content,
    Ended,
    Generated,
    Looked,
    from_batch,
    from_lines,
    to_batch,
    to_lines,
)

Forge = Callable[[list[AnyEvent]], list[AnyEvent]]


class Forger(LocalEndpoint):
    """An end that pushes other events than it recorded."""

    def __init__(self, opened: LocalProject, forge: Forge) -> None:
        super().__init__(opened)
        self._forge = forge

    def events(self, uid: str) -> bytes:
        return to_batch(self._forge(from_batch(super().events(uid))))


def push_forged(attacker: Project, remote: Remote, execution: str, forge: Forge) -> None:
    with attacker.opened() as opened:
        push(Forger(opened, forge), remote.url, [execution], None)


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    with directory_remote(tmp_path) as made:
        return made


@pytest.fixture
def victim(tmp_path: Path, remote: Remote) -> Project:
    clew = project_with_remote(tmp_path / "victim", remote)
    clew.shell("echo good > out.txt", "--name", "mine")
    clew("push", remote.url)
    return clew


@pytest.fixture
def attacker(tmp_path: Path, remote: Remote, victim: Project) -> Project:
    """Someone who can read what the victim pushed, and write there."""
    clew = project_with_remote(tmp_path / "attacker", remote)
    clew("pull", remote.url)
    clew.shell("echo evil")
    return clew


def forged_facts(attacker: Project) -> list[AnyEvent]:
    """The victim's execution failed, and left other bytes."""
    with attacker.opened() as opened:
        uid = opened.execution("e1").uid
        own = from_batch(LocalEndpoint(opened).events(uid))
    made = next(e for e in own if isinstance(e, Generated) and "out.txt" in e.version.locator)
    return [
        Ended(execution=uid, n=9_000, at=made.at, activity=uid, status=77),
        Content(
            execution=uid, n=9_001, at=made.at, version=made.version, digest=digest("evil"),
            size=4, mode=0o100644, mtime=1, stored=False,
        ),
    ]  # fmt: skip


def test_a_pulled_record_does_not_change_another_execution(
    victim: Project, attacker: Project, remote: Remote
) -> None:
    facts = forged_facts(attacker)
    mine = verified_executions(victim)
    for fact in facts:

        def forge(own: list[AnyEvent], fact: AnyEvent = fact) -> list[AnyEvent]:
            import msgspec

            return [*own, msgspec.structs.replace(fact, execution=own[0].execution)]

        push_forged(attacker, remote, "e2", forge)
        with victim.opened() as opened, pytest.raises(Rejected, match="does not belong to"):
            opened.pull(remote.url)
        assert verified_executions(victim) == mine
        for document in (remote.path / "executions").iterdir():
            if not document.name.startswith(next(iter(mine[0]))):
                document.unlink()
    assert victim("cat", "mine:out.txt").stdout == "good\n"


def test_a_second_record_of_an_execution_does_not_change_it(
    tmp_path: Path, victim: Project, attacker: Project, remote: Remote
) -> None:
    """In the name of the execution itself: here, and where neither record is known yet."""
    facts = forged_facts(attacker)
    push_forged(attacker, remote, "e1", lambda own: [*own, *facts])
    mine = verified_executions(victim)
    third = project_with_remote(tmp_path / "third", remote)
    for clew in (victim, third):
        with clew.opened() as opened, pytest.raises(Rejected):
            opened.pull(remote.url, ["mine"])
    assert verified_executions(victim) == mine
    assert third.json("list") == []


def test_a_pulled_record_does_not_poison_what_is_reused(tmp_path: Path, remote: Remote) -> None:
    """It claims that the victim's own command, on the victim's own input, makes other bytes."""
    victim = project_with_remote(tmp_path / "victim", remote)
    victim.write("raw", "one\n")
    victim.shell("sort raw > out")
    victim("checkout", "e1", "work")
    os.utime(victim.write("work/raw", "b\na\n"), (1, 1))
    victim("commit", "work")
    victim("push", remote.url)

    attacker = project_with_remote(tmp_path / "attacker", remote)
    attacker("pull", remote.url)
    attacker.shell("printf evil > x")
    with attacker.opened() as opened:
        uid = opened.execution("e2").uid
        told = b"".join(to_lines(from_batch(LocalEndpoint(opened).events(uid)))).decode()
        boot = re.search(r'"([0-9a-f]{8})-\d+-\d+-\d+"', told)
        assert boot is not None
        changes = {uid: "e" * 32, f'"{boot[1]}-': '"0badb007-', digest("a\nb\n"): digest("evil")}
        for old, new in changes.items():
            assert old in told
            told = told.replace(old, new)
        opened.graph.fold(from_lines(told.encode().splitlines(keepends=True)))
    for document in (remote.path / "executions").iterdir():
        document.unlink()
    attacker("push", remote.url, "e" * 32)

    victim("rm", "e2", "--yes")
    victim("pull", remote.url)
    victim("checkout", "e1", "again")
    os.utime(victim.write("again/raw", "b\na\n"), (1, 1))
    done = victim.json("commit", "again")
    assert not any(one["from"].startswith("e3.") for one in done["reused"])
    assert victim("cat", f"{done['execution']['id']}:{victim.folder}/out").stdout == "a\nb\n"


def test_a_pulled_record_brings_no_project_and_no_repository(
    tmp_path: Path, remote: Remote
) -> None:
    """Files that are laid out could be a `.clew` whose records count as made here, or a `.git`
    whose settings make the next `git status` run a program."""
    attacker = project_with_remote(tmp_path / "attacker", remote)
    inner = Project(attacker.folder / "sub")  # a project in sub/project
    inner.shell("echo $AWS_SECRET_ACCESS_KEY")
    attacker.write("sub/.git/config", "[core]\n\tfsmonitor = ./evil\n")
    attacker.write("sub/.clew-checkout", f'{{"root": "{inner.folder}"}}')
    given = "sub/.git/config sub/.clew-checkout sub/project/.clew/*.*"
    attacker.shell(f"cat {given} > all; mkdir -p left/.clew left/.git; cp {given} left/.clew")
    attacker("push", remote.url)

    victim = project_with_remote(tmp_path / "victim", remote)
    victim("pull", remote.url)
    victim("checkout", "e1", "work")
    victim("repeat", "e1", "--keep", "kept")
    victim("restore", "e1:sub/.git/config")
    victim("export", "e1", "--format", "ro-crate", "-o", "crate")
    for place in ("work", "kept", "crate", "sub"):
        found = [path for path in (victim.folder / place).rglob("*") if path.is_file()]
        assert found
        names = {n for path in found for n in path.relative_to(victim.folder / place).parts[:-1]}
        assert names.isdisjoint({".clew", ".git"}), place
        states = {path for path in found if path.name == ".clew-checkout"}
        assert states <= {victim.folder / "work/.clew-checkout"}, place
    for place in ("work/sub", "work/sub/project", "kept/left"):
        assert victim.json("list", cwd=victim.folder / place) == victim.json("list")
    assert victim.json("status", "work")["added"] == []
    victim.write("work/sub/_.git/config", "other")
    [changed] = victim.json("status", "work")["modified"]
    assert changed["original"].endswith("/sub/.git/config")


def test_a_pulled_record_does_not_fill_the_memory(tmp_path: Path, remote: Remote) -> None:
    """It names many zeros, which cost nothing to send, where a listing or a small file should be;
    with 64 GiB of them, reading them at once would end the session of the victim."""
    attacker = project_with_remote(tmp_path / "attacker", remote)
    with attacker.write("zeros", "").open("w") as file:
        file.truncate(100 << 20)
    attacker.write("d/name", "")
    attacker.shell("cat zeros > /dev/null; ls d; echo '{\"a\": 1}' > metrics.json")
    with attacker.opened() as opened:
        large = next(f.digest for f in opened.execution("e1").files if f.path.endswith("/zeros"))

    def forge(own: list[AnyEvent]) -> list[AnyEvent]:
        def changed(event: AnyEvent) -> AnyEvent:
            if isinstance(event, Looked) and event.kind == "listing":
                return replace(event, answer=large)
            if isinstance(event, Content) and event.version.locator.endswith("metrics.json"):
                return replace(event, digest=large, size=9)
            return event

        return [changed(event) for event in own]

    push_forged(attacker, remote, "e1", forge)
    victim = project_with_remote(tmp_path / "victim", remote)
    victim("pull", remote.url)
    assert victim.error("repeat", "e1", status=1)[0] == "oversized"
    assert victim.json("metrics", "e1")[0]["metrics"] == {}
