"""Compile the system-call witness: the one place that knows how.

`setup.py` calls it for `pip install`, the Makefile for development and for the strict check:

    python native/build.py FOLDER [--machine aarch64] [--strict]

FOLDER gets the static executables `clew-trace`, `clew-sandbox`, `clew-layer`, `clew-mount` and
`clew-step`;
`libclew-inject.so`, the library that clew-trace injects on x86-64; and `libclew-chunk.so`, which
cuts files into chunks. None needs a libc, so one build runs on every Linux of its architecture. For
another architecture than this machine's, the compiler is Zig (PyPI: ziglang), which brings the
headers and the libc of each.
A build that is newer than every source is left alone, so calling it each time costs nothing.
Only the standard library is used: this runs before anything is installed.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent

# The architectures whose system calls the tracer knows.
MACHINES = ("x86_64", "aarch64")

PRODUCTS: dict[str, tuple[str, tuple[str, ...]]] = {
    # Static: the tracer must start whatever the traced program's libraries look like.
    "clew-trace": ("trace", ("-static", "-pthread")),
    # Static: it starts in a fraction of a millisecond.
    "clew-sandbox": ("sandbox", ("-static",)),
    # Static: it runs in whatever root file system the agent has.
    "clew-layer": ("layer", ("-static",)),
    # Static: it runs in whatever container has a layer.
    "clew-mount": ("mount", ("-static",)),
    # Static: it runs in the image of any task.
    "clew-step": ("step", ("-static",)),
    # x86-64 only. No libc: the library is loaded into programs built against any libc, or against
    # none, so the compiler must not turn a loop into a call of strlen or memcpy either.
    "libclew-inject.so": (
        "inject",
        (
            *("-shared", "-fPIC", "-nostdlib", "-fvisibility=hidden"),
            *("-fno-stack-protector", "-fno-tree-loop-distribute-patterns"),
            "-Wl,-e,early_entry",  # where the tracer sends the loader, see inject_layout.h
            "-mno-red-zone",  # its calls through the known page push a return address
            "-mgeneral-regs-only",  # a system call leaves all others alone, and so must a detour
        ),
    ),
    "libclew-chunk.so": (
        "chunk",
        ("-shared", "-fPIC", "-nostdlib", "-fvisibility=hidden", "-fno-stack-protector"),
    ),
}

FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", f"-I{HERE}", f"-I{HERE}/trace")


class NotBuilt(Exception):
    """The witness could not be built; the message says why, for the user to read."""


def target_machine() -> str:
    """The architecture to build for: as Python packages are cross-compiled, another one than this
    machine's is named by the variable _PYTHON_HOST_PLATFORM (linux-aarch64)."""
    return sysconfig.get_platform().rpartition("-")[2]


def build(folder: Path, *, machine: str | None = None, strict: bool = False) -> None:
    """Compile what is out of date into `folder`."""
    machine = machine or target_machine()
    if platform.system() != "Linux" or machine not in MACHINES:
        raise NotBuilt(
            "it knows the system calls of Linux on x86-64 and aarch64 only, and this is"
            f" {platform.system()} on {machine}"
        )
    compiler = _compiler() if machine == platform.machine() else _cross_compiler(machine)
    folder.mkdir(parents=True, exist_ok=True)
    for name, (part, flags) in PRODUCTS.items():
        if machine == "x86_64" or part != "inject":
            others = {HERE / part / other for other in MACHINES if other != machine}
            sources = [path for path in (HERE / part).rglob("*.c") if path.parent not in others]
            _product(folder / name, sorted(sources), [*compiler, *flags], strict=strict)


def _cross_compiler(machine: str) -> list[str]:
    zig = [sys.executable, "-m", "ziglang"]
    if subprocess.run([*zig, "version"], capture_output=True).returncode:
        raise NotBuilt(f"compiling for {machine} needs Zig: pip install ziglang")
    return [*zig, "cc", "-target", f"{machine}-linux-musl", "-s"]


def _compiler() -> list[str]:
    wanted = shlex.split(os.environ.get("CC", "")) or ["cc"]
    for candidate in (wanted, ["gcc"], ["clang"]):
        if shutil.which(candidate[0]):
            return candidate
    raise NotBuilt(f"there is no C compiler ({wanted[0]}, gcc and clang are not in PATH)")


def _product(target: Path, sources: list[Path], compiler: list[str], *, strict: bool) -> None:
    if target.exists() and target.stat().st_mtime_ns > _newest_source():
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}")  # renamed: never half a program
    words = [*compiler, *FLAGS, *(["-Werror"] if strict else []), "-o", str(draft)]
    print(shlex.join([*words, *map(str, sources)]), flush=True)
    ran = subprocess.run([*words, *map(str, sources)], stderr=subprocess.PIPE, text=True)
    sys.stderr.write(ran.stderr)
    if ran.returncode:
        draft.unlink(missing_ok=True)
        errors = [line for line in ran.stderr.splitlines() if "error" in line] or ["no message"]
        raise NotBuilt(f"the C compiler failed on {target.name}: {errors[0]}")
    draft.replace(target)


def _newest_source() -> int:
    return max(
        path.stat().st_mtime_ns for path in HERE.rglob("*") if path.suffix in {".c", ".h", ".py"}
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile the system-call witness.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--machine", choices=MACHINES, help="another than this machine's")
    parser.add_argument("--strict", action="store_true", help="warnings are errors")
    wanted = parser.parse_args()
    try:
        build(wanted.folder, machine=wanted.machine, strict=wanted.strict)
    except NotBuilt as reason:
        print(f"The witness was not built: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
