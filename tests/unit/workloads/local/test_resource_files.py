"""Resources in files: versions, identity, damage, and kills at any point."""

import json
from pathlib import Path

import pytest
from tests.unit.workloads.local.resources import key, notebook, viewer, volume

from clew.errors import Conflict, Exists, NotFound, UsageError
from clew.kube.objects import Object
from clew.workloads.local.resource_files import ResourceFiles, merge

NOTEBOOK = key(notebook())


def test_what_was_created_is_there_after_a_restart(tmp_path: Path) -> None:
    files = ResourceFiles(tmp_path)
    made = files.create(notebook())
    files.add_event(NOTEBOOK, warning=True, reason="Crashing", message="It ended.")
    again = ResourceFiles(tmp_path)
    assert again.get(NOTEBOOK) == made
    assert [event["reason"] for event in again.events(NOTEBOOK)] == ["Crashing"]
    assert again.version >= files.version


def test_versions_only_increase(tmp_path: Path) -> None:
    files = ResourceFiles(tmp_path)
    seen = [files.version]
    files.create(notebook())
    seen.append(files.version)
    files.merge_patch(NOTEBOOK, {"metadata": {"labels": {"a": "b"}}})
    seen.append(files.version)
    files.touch()
    seen.append(files.version)
    files.remove(NOTEBOOK)
    seen.append(files.version)
    seen.append(ResourceFiles(tmp_path).version)
    assert seen == sorted(set(seen))


def test_a_name_is_taken_once_per_kind(tmp_path: Path) -> None:
    files = ResourceFiles(tmp_path)
    files.create(notebook("data"))
    files.create(volume("data"))
    with pytest.raises(Exists):
        files.create(notebook("data"))


def test_a_change_of_an_old_version_is_refused(tmp_path: Path) -> None:
    files = ResourceFiles(tmp_path)
    old = files.create(notebook())
    files.merge_patch(NOTEBOOK, {"metadata": {"labels": {"a": "b"}}})
    with pytest.raises(Conflict):
        files.replace(NOTEBOOK, old)


def test_no_change_reaches_identity_or_status(tmp_path: Path) -> None:
    files = ResourceFiles(tmp_path)
    made = files.create(notebook())
    metadata = {"name": "other", "uid": "x", "namespace": "y", "deletionTimestamp": "now"}
    patched = files.merge_patch(NOTEBOOK, {"metadata": metadata, "kind": "Pod", "status": {"x": 1}})
    for name in ("name", "uid", "namespace", "creationTimestamp"):
        assert patched["metadata"][name] == made["metadata"][name]
    assert "deletionTimestamp" not in patched["metadata"]
    assert (patched["kind"], patched["status"]) == ("Notebook", {})


def test_only_a_change_of_the_spec_is_a_new_generation(tmp_path: Path) -> None:
    files = ResourceFiles(tmp_path)
    files.create(notebook())
    labelled = files.merge_patch(NOTEBOOK, {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 1
    edited = files.merge_patch(NOTEBOOK, {"spec": {"more": 1}})
    assert edited["metadata"]["generation"] == 2


def test_an_invalid_change_changes_nothing(tmp_path: Path) -> None:
    def refuse(_: Object) -> None:
        raise UsageError("no")

    files = ResourceFiles(tmp_path)
    made = files.create(notebook())
    with pytest.raises(UsageError):
        files.merge_patch(NOTEBOOK, {"spec": {"more": 1}}, check=refuse)
    assert files.get(NOTEBOOK) == made


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b"null",
        b"[" * 100_000,
        json.dumps({**notebook(), "kind": "PVCViewer"}).encode(),
        json.dumps({**notebook("other")}).encode(),
        json.dumps({"kind": "Notebook", "metadata": {"name": "first"}, "spec": 1}).encode(),
        json.dumps(
            merge(notebook("first"), {"metadata": {"resourceVersion": "1", "uid": "../../x"}})
        ).encode(),
    ],
)
def test_a_damaged_file_hides_no_other(tmp_path: Path, text: bytes) -> None:
    files = ResourceFiles(tmp_path)
    files.create(notebook())
    files.create(viewer())
    damaged = tmp_path / "notebook" / "first.json"
    damaged.write_bytes(text)
    again = ResourceFiles(tmp_path)
    with pytest.raises(NotFound):
        again.get(NOTEBOOK)
    assert again.get(key(viewer()))
    assert damaged.read_bytes() == text, "it is left for its owner to repair"


def test_damaged_events_cost_only_the_events(tmp_path: Path) -> None:
    files = ResourceFiles(tmp_path)
    files.create(notebook())
    files.add_event(NOTEBOOK, warning=False, reason="Started", message="It runs.")
    (tmp_path / "events" / "notebook.first.json").write_text("{")
    assert ResourceFiles(tmp_path).get(NOTEBOOK)


def test_a_kill_while_writing_leaves_the_version_before(tmp_path: Path) -> None:
    files = ResourceFiles(tmp_path)
    made = files.create(notebook())
    (tmp_path / "notebook" / ".first.json.draft").write_text('{"kind": "Noteb')
    again = ResourceFiles(tmp_path)
    assert again.get(NOTEBOOK) == made
    assert again.list("Notebook") == [made]


def test_files_are_for_their_user_only(tmp_path: Path) -> None:
    ResourceFiles(tmp_path).create(notebook())
    found = tmp_path / "notebook" / "first.json"
    assert found.stat().st_mode & 0o077 == 0
    assert found.parent.stat().st_mode & 0o077 == 0


def test_events_are_counted_and_bounded(tmp_path: Path) -> None:
    files = ResourceFiles(tmp_path)
    files.create(notebook())
    for _ in range(3):
        files.add_event(NOTEBOOK, warning=True, reason="Crashing", message="the same")
    assert [event["count"] for event in files.events(NOTEBOOK)] == [3]
    for number in range(100):
        files.add_event(NOTEBOOK, warning=True, reason="Crashing", message=str(number))
    assert len(files.events(NOTEBOOK)) == 50


def test_a_status_of_a_resource_that_was_replaced_is_not_written(tmp_path: Path) -> None:
    files = ResourceFiles(tmp_path)
    old = files.create(notebook())
    files.remove(NOTEBOOK)
    new = files.create(notebook())
    files.write_status(NOTEBOOK, old["metadata"]["uid"], {"readyReplicas": 1})
    assert files.get(NOTEBOOK) == new


def test_merge_follows_rfc_7396() -> None:
    current = {"a": {"b": 1, "c": [1]}, "d": 2}
    assert merge(current, {"a": {"b": None, "c": [2]}, "e": {"f": None}}) == {
        "a": {"c": [2]},
        "d": 2,
        "e": {},
    }
