"""Volumes: created and deleted by name, and linked at their mount paths."""

from pathlib import Path

import pytest

from clew.pipelines.tasks import platform_mapping
from clew.pipelines.tasks.volumes import VolumeError, Volumes
from clew.project_directory import create


def test_only_created_volumes_are_deleted(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    volumes = Volumes(
        platform_mapping.PlatformMapping(tmp_path, claims={"own": own}),
        create(tmp_path),
        tmp_path / "r",
        "u",
    )
    volumes.create("made")
    assert (tmp_path / "pipeline-volumes" / "made").is_dir()
    for name in ("made", "own", "../out", ""):
        with pytest.raises(VolumeError):
            volumes.create(name)
    for name in ("own", "none", "..", "a/../../own"):
        with pytest.raises(VolumeError):
            volumes.delete(name)
    volumes.delete("made")
    assert own.is_dir()
    assert list((tmp_path / "pipeline-volumes").iterdir()) == []


def test_links_are_shared_and_removed_with_the_last_task(tmp_path: Path) -> None:
    volumes = Volumes(
        platform_mapping.PlatformMapping(tmp_path), create(tmp_path), tmp_path / "run", "u"
    )
    path, target = tmp_path / "some" / "where", tmp_path / "target"
    places = frozenset({(str(path), str(target))})
    volumes.mount(places)
    volumes.mount(places)
    volumes.unmount(places)
    assert path.samefile(target)
    volumes.unmount(places)
    assert not (tmp_path / "some").exists()
    assert target.is_dir()
    volumes.mount(places)
    volumes.close()
    assert not (tmp_path / "some").exists()


def test_in_an_image_a_volume_needs_no_link(tmp_path: Path) -> None:
    volumes = Volumes(
        platform_mapping.PlatformMapping(tmp_path), create(tmp_path), tmp_path / "run", "u"
    )
    places = frozenset({(str(tmp_path / "path"), str(tmp_path / "target"))})
    volumes.unmount(volumes.mount(places, mounted=True))
    assert not (tmp_path / "path").exists()
    assert (tmp_path / "target").is_dir()
    volumes.unmount(volumes.mount(places))
    assert not (tmp_path / "path").exists()


def test_a_link_does_not_replace_a_file(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    first = (str(tmp_path / "a"), str(tmp_path / "target"))
    places = frozenset({first, (str(tmp_path / "there"), str(tmp_path / "target"))})
    volumes = Volumes(
        platform_mapping.PlatformMapping(tmp_path), create(tmp_path), tmp_path / "run", "u"
    )
    with pytest.raises(VolumeError, match="there: File exists"):
        volumes.mount(places)
    assert (tmp_path / "there").read_text() == "mine"
    assert not (tmp_path / "a").exists()
    volumes.mount(frozenset({first}))
    assert (tmp_path / "a").samefile(tmp_path / "target")
    volumes.close()
