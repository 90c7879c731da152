"""`clew key`, and what signatures do for push, pull, show and fsck."""

import json
import sqlite3
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.remotes import Remote, directory_remote, project_with_remote, verified_executions
from tests.local.test_forged_records import forged_facts, push_forged

from clew.api.local.remotes.remote_documents import Document
from clew.errors import Rejected
from clew.store.remotes import document_name


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    with directory_remote(tmp_path) as made:
        return made


@pytest.fixture
def signer(tmp_path: Path, remote: Remote) -> Project:
    """Someone with a key, who pushed one execution."""
    clew = project_with_remote(tmp_path / "signer", remote)
    clew("key", "create")
    clew.shell("echo good > out.txt", "--name", "mine")
    clew("push", remote.url)
    return clew


def pulled(tmp_path: Path, remote: Remote) -> Project:
    clew = project_with_remote(tmp_path / "reader", remote)
    clew("pull", remote.url)
    return clew


def alter(clew: Project, statement: str) -> None:
    """Change the graph behind Clew's back."""
    graph = sqlite3.connect(clew.folder / ".clew/graph.db", isolation_level=None)
    graph.execute(statement)
    graph.close()


def documents(remote: Remote) -> list[Path]:
    return sorted((remote.path / "executions").iterdir())


def test_the_signer_is_named(tmp_path: Path, signer: Project, remote: Remote) -> None:
    key = signer.json("key", "show")
    assert signer("key", "show").stdout.strip() == key["public"]
    reader = pulled(tmp_path, remote)
    unknown = f"unknown key {key['fingerprint']}"
    assert [e["signed_by"] for e in reader.json("list")] == [unknown]
    assert reader("key", "list").stderr == (
        "there are no known signers; add one with: clew key allow NAME KEY\n"
    )
    (tmp_path / "ann.pub").write_text(key["public"])
    reader("key", "allow", "ann@example.org", str(tmp_path / "ann.pub"))
    assert reader.json("key", "list") == [
        {"name": "ann@example.org", "fingerprint": key["fingerprint"]}
    ]
    assert reader.json("show", "mine")["signed_by"] == "ann@example.org"
    assert "signed by ann@example.org" in reader("show", "mine").stdout
    assert "(made elsewhere, signed by ann@example.org)" in reader("list").stdout
    verified_executions(reader)
    assert reader.json("gc", "--dry-run")["files"] == 0
    # what is pushed on keeps the signature, and is not signed by who only passes it on
    reader("key", "create")
    again = Remote(f"{remote.url}-again", Path(f"{remote.url}-again"))
    reader("push", again.url)
    (document,) = documents(again)
    assert (
        json.loads(document.read_bytes())["signature"]
        == json.loads(documents(remote)[0].read_bytes())["signature"]
    )


def test_signing_is_optional(tmp_path: Path, remote: Remote) -> None:
    clew = project_with_remote(tmp_path / "here", remote)
    assert clew.error("key", "show", status=5)[2] == "clew key create"
    clew.shell("true")
    clew("push", remote.url)
    clew("key", "create")
    assert clew.error("key", "create", status=1)[0] == "exists"
    assert clew.json("push", remote.url, "--no-sign")["executions"] == []
    assert len(documents(remote)) == 1
    reader = pulled(tmp_path, remote)
    assert reader.json("list")[::-1][0]["signed_by"] is None
    assert len(clew.json("push", remote.url)["executions"]) == 1  # now it is signed
    reader("pull", remote.url, "e1")
    assert reader.json("list")[::-1][0]["signed_by"].startswith("unknown key SHA256:")


def test_a_record_with_a_bad_signature_is_refused(
    tmp_path: Path, signer: Project, remote: Remote
) -> None:
    """The signature of one record on another, as a thief of signatures would do it."""
    signer.shell("echo two")
    signer("push", remote.url)
    paths = {json.loads(path.read_bytes())["execution"]["id"]: path for path in documents(remote)}
    first, second = (json.loads(paths[name].read_bytes()) for name in ("e1", "e2"))
    paths["e1"].unlink()
    uid = first["execution"]["uid"]
    data = json.dumps({**first, "signature": second["signature"]}).encode()
    (remote.path / "executions" / document_name(uid, data)).write_bytes(data)
    reader = project_with_remote(tmp_path / "reader", remote)
    code, message, _ = reader.error("pull", remote.url, status=4)
    assert (code, message) == (
        "rejected",
        f"the record of {uid[:8]}: its signature is not valid",
    )
    found = [execution["uid"] for execution in reader.json("list")[::-1]]
    assert found == [second["execution"]["uid"]]  # the other one is not held up by it


def test_a_known_signer_outweighs_a_forged_record(
    tmp_path: Path, signer: Project, remote: Remote
) -> None:
    attacker = project_with_remote(tmp_path / "attacker", remote)
    attacker("pull", remote.url)
    facts = forged_facts(attacker)
    alter(attacker, "DELETE FROM signature")
    push_forged(attacker, remote, "e1", lambda own: [*own, *facts])
    reader = project_with_remote(tmp_path / "reader", remote)
    with reader.opened() as opened, pytest.raises(Rejected):
        opened.pull(remote.url)  # two records that contradict, and none is known to be right
    reader("key", "allow", "ann", signer.json("key", "show")["public"])
    reader("pull", remote.url)
    found = reader.json("list")[::-1][0]
    assert (found["state"], found["signed_by"]) == ("done", "ann")
    assert reader("cat", f"mine:{signer.folder}/out.txt").stdout == "good\n"


def test_fsck_finds_what_was_changed_after_it_was_signed(
    tmp_path: Path, signer: Project, remote: Remote
) -> None:
    reader = pulled(tmp_path, remote)
    out = f"{signer.folder}/out.txt"
    changes = {
        "UPDATE ended SET status = 77 WHERE activity IN (SELECT id FROM execution)": "ended",
        "UPDATE content SET digest = zeroblob(32), stored = 0 WHERE version IN (SELECT v.id FROM"
        f" version v JOIN location l ON l.id = v.location WHERE l.locator LIKE '%{out}')": out,
        "DELETE FROM used WHERE n = (SELECT min(n) FROM used)": "used",
        "UPDATE signature SET signature = 'x'": "signature cannot be checked",
        "UPDATE signature SET key = 'x'": "signature does not match the record",
    }
    path = reader.folder / ".clew/graph.db"
    for change, told in changes.items():
        saved = path.read_bytes()
        alter(reader, change)
        with reader.opened() as opened:
            problems = opened.fsck().problems
        assert any(told in problem.what + problem.where for problem in problems), (change, problems)
        path.write_bytes(saved)
    verified_executions(reader)


def test_documents_of_older_versions_have_no_signature() -> None:
    assert Document({}, "", []).signature is None
