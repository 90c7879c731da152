"""The accelerators of a machine, and the versions of their software.

Read from the files of drivers and libraries: loading a library or waking a device may take seconds.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib")
_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}


def find_accelerators(root: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """The facets `gpu`, `driver`, `cuda` and `cudnn`, as far as they are present."""
    facets = {
        "gpu": list(_devices(root)),
        "driver": _driver(root),
        "cuda": _cuda(root, environ),
        "cudnn": _cudnn(root),
    }
    return {name: value for name, value in facets.items() if value}


def _devices(root: Path) -> Iterator[dict[str, str]]:
    has_nvidia_driver = False
    for directory in _entries(root / "proc/driver/nvidia/gpus"):
        lines = dict(re.findall(r"^(.+?):\s*(.+?)\s*$", _read(directory / "information"), re.M))
        has_nvidia_driver = True
        yield {
            "vendor": "NVIDIA",
            "model": lines.get("Model", ""),
            "bus": directory.name,
            "uuid": lines.get("GPU UUID", ""),
        }
    for device in _entries(root / "sys/bus/pci/devices"):
        vendor = _VENDORS.get(_read(device / "vendor"), "")
        if not vendor or (has_nvidia_driver and vendor == "NVIDIA"):
            continue
        if _read(device / "class").startswith(("0x03", "0x12")):  # display, accelerator
            yield {"vendor": vendor, "model": _read(device / "device"), "bus": device.name}


def _driver(root: Path) -> dict[str, str]:
    versions: dict[str, str] = {}
    nvidia = re.search(
        r"Kernel Module\s+(?:for \S+\s+)?(\d[\d.]*)", _read(root / "proc/driver/nvidia/version")
    )
    if nvidia:
        versions["nvidia"] = nvidia[1]
    amd = _read(root / "sys/module/amdgpu/version")
    if amd:
        versions["amdgpu"] = amd
    return versions


def _cuda(root: Path, environ: Mapping[str, str]) -> str:
    import json  # rarely needed

    homes = [environ.get("CUDA_HOME", ""), environ.get("CUDA_PATH", ""), "/usr/local/cuda"]
    for home in filter(None, homes):
        directory = root / home.lstrip("/")
        if not directory.is_dir():
            continue
        try:
            return str(json.loads(_read(directory / "version.json"))["cuda"]["version"])
        except (ValueError, KeyError, TypeError):
            pass
        older = re.search(r"CUDA Version (\S+)", _read(directory / "version.txt"))
        if older:
            return older[1]
    return _library(root, "libcudart.so.")


def _cudnn(root: Path) -> str:
    for header in ("usr/include/cudnn_version.h", "usr/local/cuda/include/cudnn_version.h"):
        numbers = dict(
            re.findall(r"#define CUDNN_(MAJOR|MINOR|PATCHLEVEL)\s+(\d+)", _read(root / header))
        )
        if len(numbers) == 3:
            return ".".join(numbers[n] for n in ("MAJOR", "MINOR", "PATCHLEVEL"))
    return _library(root, "libcudnn.so.")


def _library(root: Path, stem: str) -> str:
    """The longest version in the file names of a library."""
    versions: list[str] = []
    for directory in (*_LIBRARIES, "usr/local/cuda/lib64"):
        try:
            names = os.listdir(root / directory)
        except OSError:
            continue
        versions += [name[len(stem) :] for name in names if name.startswith(stem)]
    return max(versions, key=len, default="")


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _read(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(65536).decode(errors="replace").strip()
    except OSError:
        return ""
