"""Boot the virtual machine, run its program, and fetch what that wrote."""

import os
import shutil
import subprocess
from pathlib import Path

_SECONDS = 1500  # emulation is slow, and other work may run beside it


def run(folder: Path) -> Path:
    """Boot the disk in the folder and wait until the program has ended; return a folder with the
    files of /results. Raise RuntimeError if the machine fails or the program does."""
    console = folder / "console"
    qemu = [
        *("nice", "qemu-system-aarch64", "-machine", "virt", "-cpu", "cortex-a72"),
        *("-smp", "2", "-m", "1G", "-nographic", "-no-reboot", "-nic", "none"),
        *("-kernel", "kernel", "-initrd", "initramfs"),
        *("-append", "console=ttyAMA0 panic=-1 quiet"),
        *("-drive", "file=disk,format=raw,if=none,id=disk,cache=unsafe"),
        *("-device", "virtio-blk-device,drive=disk"),
    ]
    with console.open("wb") as output:
        subprocess.run(
            qemu,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=_SECONDS,
            check=True,
        )
    results = folder / "results"
    shutil.rmtree(results, ignore_errors=True)
    subprocess.run(
        ["debugfs", "-R", "rdump /results .", "disk"],
        cwd=folder,
        check=True,
        capture_output=True,
        env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"},
    )
    status = results / "status"
    if not status.exists():
        raise RuntimeError(f"the machine failed:\n{console.read_text(errors='replace')[-4000:]}")
    if status.read_text().strip() != "0":
        raise RuntimeError(f"the program failed:\n{(results / 'output').read_text()[-8000:]}")
    return results
