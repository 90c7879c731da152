"""Edits of a resource's YAML: conflicts, and what users do not edit."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import clew
from clew.errors import Conflict, UsageError
from clew.kube.objects import Json, Key, annotations_of
from clew.workloads import annotations
from clew.workloads.changes.edits import replace_yaml
from clew.workloads.details import to_yaml
from clew.workloads.forms.spawner_config import FormDefaults
from clew.workloads.local.local_backend import LocalBackend

KEY = Key("Notebook", "local", "mine")
DEFAULTS = FormDefaults({})
USED = {annotations.LAST_ACTIVITY: "2026-03-01T12:00:00Z"}


@pytest.fixture(name="backend")
def make_backend(tmp_path: Path) -> Iterator[LocalBackend]:
    """With one notebook, which does not run."""
    with clew.init(tmp_path) as project:
        backend = LocalBackend(project.directory)
    container = {"name": "mine", "image": "this-machine"}
    backend.create(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "Notebook",
            "metadata": {
                "name": "mine",
                "namespace": "local",
                "annotations": {annotations.REQUEST: "key", "note": "first"},
            },
            "spec": {"template": {"spec": {"containers": [container]}}},
        }
    )
    yield backend
    backend.close()


def _annotate(backend: LocalBackend, notes: Json) -> None:
    backend.merge_patch(KEY, {"metadata": {"annotations": notes}})


def test_an_edit_keeps_what_the_system_has_written(backend: LocalBackend) -> None:
    base = to_yaml(backend.get(KEY))
    assert annotations.REQUEST not in base
    assert "resourceVersion" not in base
    _annotate(backend, USED)
    replace_yaml(backend, KEY, base.replace("first", "second"), DEFAULTS, base=base)
    notes = annotations_of(backend.get(KEY))
    assert notes == {annotations.REQUEST: "key", "note": "second", **USED}


def test_an_edit_does_not_undo_what_others_changed(backend: LocalBackend) -> None:
    base = to_yaml(backend.get(KEY))
    _annotate(backend, {"note": "theirs"})
    with pytest.raises(Conflict, match="was changed since you opened it"):
        replace_yaml(backend, KEY, base.replace("first", "ours"), DEFAULTS, base=base)
    assert annotations_of(backend.get(KEY))["note"] == "theirs"


def test_a_use_that_is_noted_during_an_edit_is_no_conflict(
    backend: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = to_yaml(backend.get(KEY))
    replace, tries = backend.replace, []

    def replace_after_use(resource: Json) -> Json:
        tries.append(resource)
        if len(tries) == 1:
            _annotate(backend, USED)
        return replace(resource)

    monkeypatch.setattr(backend, "replace", replace_after_use)
    replace_yaml(backend, KEY, base.replace("first", "second"), DEFAULTS, base=base)
    assert len(tries) == 2
    assert annotations_of(backend.get(KEY)).items() >= {"note": "second", **USED}.items()


def test_a_version_in_the_text_must_be_the_current_one(backend: LocalBackend) -> None:
    text = to_yaml(backend.get(KEY)).replace("metadata:", "metadata:\n  resourceVersion: '1'", 1)
    with pytest.raises(Conflict):
        replace_yaml(backend, KEY, text, DEFAULTS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: mine\n  namespace", "name: other\n  namespace"),
        ("namespace: local", "namespace: elsewhere"),
        ("kind: Notebook", "kind: Secret"),
        ("note: first", "note: [1]"),
        ("spec:", "specs:"),
        ("kind:", "- kind:"),
    ],
)
def test_other_texts_are_refused(backend: LocalBackend, old: str, new: str) -> None:
    base = to_yaml(backend.get(KEY))
    assert old in base
    with pytest.raises(UsageError):
        replace_yaml(backend, KEY, base.replace(old, new, 1), DEFAULTS, base=base)
    assert to_yaml(backend.get(KEY)) == base
