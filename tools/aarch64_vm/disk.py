"""The disk of the virtual machine: Debian, Clew's wheel, and the Python program to run."""

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.aarch64_vm import debian

SITE_PACKAGES = "usr/local/lib/python3.11/dist-packages"
# For the disk, and for the overlays of sandboxes. Those that one needs come before it.
_MODULES = (
    *("lib/crc16", "crypto/crc32c_generic", "fs/mbcache", "fs/jbd2/jbd2", "fs/ext4/ext4"),
    *("drivers/virtio/virtio_mmio", "drivers/block/virtio_blk", "fs/overlayfs/overlay"),
)
_GLIBC = range(17, 37)  # minor versions whose wheels run on the Debian of the machine

# Runs from memory: loads what the disk needs and continues there.
_FIRST_INIT = """#!/bin/busybox sh
busybox mount -t devtmpfs dev /dev
for module in {modules}; do busybox insmod /modules/$module.ko; done
busybox mount -t ext4 /dev/vda /disk
busybox mount -t devtmpfs dev /disk/dev
exec busybox switch_root /disk /usr/local/sbin/init
"""

# The first process of the machine.
_INIT = """#!/bin/sh
export PATH=/usr/local/bin:/usr/bin:/usr/sbin HOME=/root LC_ALL=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /tmp
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
busybox hostname debian
cd /results
python3 {program} > output 2>&1
echo $? > status
mount -o remount,ro /
busybox poweroff -f
"""


def make_disk(folder: Path, *, wheel: Path, program: Path, files: Sequence[Path] = ()) -> None:
    """Write `kernel`, `initramfs` and `disk` to the folder: a machine with the wheel installed
    that runs the Python program in /results, where the files are, too. What was downloaded or
    unpacked before is used."""
    folder = folder.resolve()
    base = folder / "base"
    if not base.exists():
        draft = folder / "base.part"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        debian.unpack(draft, folder / "apt")
        draft.rename(base)
    root = folder / "root"
    shutil.rmtree(root, ignore_errors=True)
    # Modules are in the initramfs.
    skipped = shutil.ignore_patterns("modules", "vmlinuz*", "System.map*")
    shutil.copytree(base, root, symlinks=True, ignore=skipped)
    _install(wheel, root / SITE_PACKAGES)
    (root / "results").mkdir()
    for file in (program, *files):
        shutil.copy(file, root / "results")
    _write_program(root / "usr/local/sbin/init", _INIT.format(program=program.name))
    _write_program(root / "usr/local/bin/clew", '#!/bin/sh\nexec python3 -m clew "$@"\n')
    shutil.copy(next((base / "boot").glob("vmlinuz-*")), folder / "kernel")
    (folder / "initramfs").write_bytes(_initramfs(base))
    disk = folder / "disk"
    disk.unlink(missing_ok=True)
    subprocess.run(
        ["mke2fs", "-q", "-t", "ext4", "-d", os.fspath(root), os.fspath(disk), "1G"],
        check=True,
        env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
    )


def _install(wheel: Path, target: Path) -> None:
    """Install as pip does on that machine: it must accept the tags of every wheel."""
    platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in reversed(_GLIBC)]
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "-q", "-c", "constraints.txt"),
            *("--only-binary", ":all:", "--python-version", "3.11", *platforms),
            *("--target", os.fspath(target), os.fspath(wheel)),
        ],
        check=True,
    )


def _write_program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def _initramfs(base: Path) -> bytes:
    """The file system in memory that the kernel begins with, as a cpio archive."""
    modules = next((base / "usr/lib/modules").iterdir()) / "kernel"
    names = [Path(name).name for name in _MODULES]
    archive = io.BytesIO()
    for directory in ("bin", "dev", "disk", "modules"):
        _add_entry(archive, directory, 0o40755, b"")
    _add_entry(archive, "bin/busybox", 0o100755, (base / "bin/busybox").read_bytes())
    for module, name in zip(_MODULES, names, strict=True):
        _add_entry(archive, f"modules/{name}.ko", 0o100644, (modules / f"{module}.ko").read_bytes())
    init = _FIRST_INIT.format(modules=" ".join(names))
    _add_entry(archive, "init", 0o100755, init.encode())
    _add_entry(archive, "TRAILER!!!", 0, b"")
    return archive.getvalue()


def _add_entry(archive: io.BytesIO, name: str, mode: int, data: bytes) -> None:
    """One entry of the format newc: 13 numbers, the name and the data, each padded to 4 bytes."""
    path = name.encode() + b"\0"
    numbers = (0, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + path
    archive.write(head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4))
