"""Where volumes are, and that nothing leads out of them."""

import os
from pathlib import Path

import pytest
from tests.unit.workloads.local.resources import volume

from clew.errors import ClewError, NotAllowed, NotFound, UsageError
from clew.project_directory import ProjectDirectory
from clew.workloads.annotations import DIRECTORY
from clew.workloads.local.volume_directories import VolumeDirectories


@pytest.fixture
def volumes(directory: ProjectDirectory) -> VolumeDirectories:
    return VolumeDirectories(directory.root, directory.path, directory.uid, "2026-03-01T11:00:00Z")


def named(path: str) -> dict[str, object]:
    return volume(annotations={DIRECTORY: path})


def test_a_volume_is_a_directory_of_its_own(
    directory: ProjectDirectory, volumes: VolumeDirectories
) -> None:
    place = volumes.path(volume())
    assert place == directory.path / "volumes" / "data"
    (place / "x").write_text("1")
    volumes.delete(volume())
    assert not place.exists()


def test_a_directory_of_the_user_is_kept(
    directory: ProjectDirectory, volumes: VolumeDirectories
) -> None:
    (directory.root / "raw").mkdir()
    (directory.root / "raw" / "x").write_text("1")
    assert volumes.path(named("raw")) == directory.root / "raw"
    volumes.delete(named("raw"))
    volumes.delete(volumes.project_claim())
    assert (directory.root / "raw" / "x").exists()


@pytest.mark.parametrize("path", ["/etc", "..", "../x", "a/../../x", "", "a\0b", "raw/.."])
def test_a_path_out_of_the_project_is_refused(volumes: VolumeDirectories, path: str) -> None:
    with pytest.raises(UsageError):
        volumes.check(named(path))


@pytest.mark.parametrize("path", [".clew", ".clew/store", "./.clew", "link-to-own"])
def test_clews_own_files_are_refused(
    directory: ProjectDirectory, volumes: VolumeDirectories, path: str
) -> None:
    (directory.root / "link-to-own").symlink_to(".clew")
    with pytest.raises(NotAllowed):
        volumes.check(named(path))


def test_links_out_of_the_project_are_refused(
    directory: ProjectDirectory, volumes: VolumeDirectories, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (directory.root / "raw").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotAllowed):
        volumes.path(named("raw"))
    (directory.path / "volumes").mkdir()
    (directory.path / "volumes" / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotAllowed):
        volumes.path(volume())
    (tmp_path / "elsewhere" / "x").write_text("1")
    volumes.delete(volume())
    assert (tmp_path / "elsewhere" / "x").exists(), "the link was deleted, not where it leads"
    assert not os.path.lexists(directory.path / "volumes" / "data")


@pytest.mark.parametrize("inner", ["../x", "a/../..", "..", "./a", "a\0b"])
def test_no_path_in_a_volume_leads_out(volumes: VolumeDirectories, inner: str) -> None:
    with pytest.raises(UsageError):
        volumes.path_in(volume(), inner)


def test_no_link_in_a_volume_leads_out(volumes: VolumeDirectories, tmp_path: Path) -> None:
    (volumes.path(volume()) / "logs").symlink_to(tmp_path)
    with pytest.raises(NotAllowed):
        volumes.path_in(volume(), "logs")
    with pytest.raises(NotAllowed):
        volumes.path_in(volume(), "logs/deeper")
    (volumes.path(volume()) / "own").symlink_to(".")
    assert volumes.path_in(volume(), "own") == volumes.path(volume())


def test_a_missing_directory_says_how_to_make_it(volumes: VolumeDirectories) -> None:
    with pytest.raises(NotFound) as raised:
        volumes.path(named("data/raw"))
    assert raised.value.hint == "mkdir data/raw"
    assert isinstance(raised.value, ClewError)
