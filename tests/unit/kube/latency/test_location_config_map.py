"""Locations are read as the kubelet mounts a ConfigMap."""

from pathlib import Path

from clew.kube.latency.location_config_map import read_locations
from clew.placement.measurement.locations import ProbeAddress


def mount(folder: Path, version: str, **entries: str) -> None:
    """Write a version as the kubelet does: links into a directory that is exchanged."""
    made = folder / f"..{version}"
    made.mkdir()
    for name, text in entries.items():
        (made / name).write_text(text)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data") / name)
    fresh = folder / "..data_new"
    fresh.symlink_to(made.name)
    fresh.rename(folder / "..data")


def test_a_new_version_replaces_the_former(tmp_path: Path) -> None:
    mount(tmp_path, "1", HOME="h:1")
    assert read_locations(tmp_path).addresses == {"HOME": ProbeAddress("h", 1)}
    mount(tmp_path, "2", HOME="h:2\n", EDGE="192.0.2.1")
    found = read_locations(tmp_path)
    assert found.addresses == {"HOME": ProbeAddress("h", 2), "EDGE": ProbeAddress("192.0.2.1")}
    assert not found.problems


def test_what_cannot_be_read_is_a_problem_and_no_location(tmp_path: Path) -> None:
    (tmp_path / "LONG").write_text("h" * 10_000)
    (tmp_path / "BYTES").write_bytes(b"\xff\xfe:1")
    found = read_locations(tmp_path)
    assert not found.addresses
    assert len(found.problems) == 2
    missing = read_locations(tmp_path / "missing")
    assert missing.addresses == {}
    assert "No such file" in missing.problems[0]
