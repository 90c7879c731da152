"""Check the native programs in a wheel: the right architecture, and no libc needed."""

import struct
import zipfile
from pathlib import Path

# The number of each architecture in an ELF header, and what its wheel holds.
_MACHINES = {"x86_64": 62, "aarch64": 183}
_PROGRAMS = {
    *("clew-layer", "clew-mount", "clew-sandbox", "clew-step", "clew-trace", "libclew-chunk.so")
}
_ONLY = {"x86_64": {"libclew-inject.so"}, "aarch64": set[str]()}
_LOADER, _DYNAMIC, _NEEDED = 3, 2, 1  # PT_INTERP, PT_DYNAMIC, DT_NEEDED
_TAG = "py3-none-manylinux_2_17_"


def check_wheels(folder: Path) -> None:
    """Raise ValueError unless there is a correct wheel for each architecture."""
    found = {}
    for path in folder.glob("*.whl"):
        machine = path.stem.rpartition(_TAG)[2]
        if machine not in _MACHINES:
            raise ValueError(f"{path.name}: not a wheel of a known architecture")
        found[machine] = path
    for machine in _MACHINES:
        if machine not in found:
            raise ValueError(f"{folder}: there is no wheel for {machine}")
        _check_wheel(found[machine], machine)


def _check_wheel(path: Path, machine: str) -> None:
    with zipfile.ZipFile(path) as wheel:
        names = [name for name in wheel.namelist() if "/_native/" in name]
        metadata = next(name for name in wheel.namelist() if name.endswith(".dist-info/WHEEL"))
        if f"Tag: {_TAG}{machine}\n" not in wheel.read(metadata).decode():
            raise ValueError(f"{path.name}: its metadata has another tag")
        if {name.rpartition("/")[2] for name in names} != _PROGRAMS | _ONLY[machine]:
            raise ValueError(f"{path.name}: wrong programs: {names}")
        for name in names:
            _check_program(f"{path.name}: {name}", wheel.read(name), machine)


def _check_program(name: str, data: bytes, machine: str) -> None:
    if data[:6] != b"\x7fELF\x02\x01" or data[18] != _MACHINES[machine]:
        raise ValueError(f"{name} is not a program for {machine}")
    (offset,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for at in range(offset, offset + size * count, size):
        kind, _, begin, _, _, length = struct.unpack_from("<IIQQQQ", data, at)
        if kind == _LOADER:
            raise ValueError(f"{name} is not static")
        if kind == _DYNAMIC:
            entries = struct.iter_unpack("<qQ", data[begin : begin + length])
            if any(tag == _NEEDED for tag, _ in entries):
                raise ValueError(f"{name} needs a library")
