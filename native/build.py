"""Compile the system-call witness: the one place that knows how.

`setup.py` calls it for `pip install`, the Makefile for development and for the strict check:

    python native/build.py FOLDER [--strict]

FOLDER gets the static executables `clew-trace` and `clew-sandbox`; `libclew-inject.so`, the library
that clew-trace injects; and `libclew-chunk.so`, which cuts files into chunks. None needs a libc, so
one build runs on every Linux of its architecture.
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
from pathlib import Path

HERE = Path(__file__).resolve().parent

PRODUCTS: dict[str, tuple[str, tuple[str, ...]]] = {
    # Static: the tracer must start whatever the traced program's libraries look like.
    "clew-trace": ("trace", ("-static", "-pthread")),
    # Static: it starts in a fraction of a millisecond.
    "clew-sandbox": ("sandbox", ("-static",)),
    # No libc: the library is loaded into programs built against any libc, or against none, so the
    # compiler must not turn a loop into a call of strlen or memcpy either.
    "libclew-inject.so": (
        "inject",
        (
            *("-shared", "-fPIC", "-nostdlib", "-fvisibility=hidden"),
            *("-fno-stack-protector", "-fno-tree-loop-distribute-patterns"),
            "-Wl,-e,early_entry",  # where the tracer sends the loader, see wire.h
            "-mno-red-zone",  # its calls through the known page push a return address
            "-mgeneral-regs-only",  # a system call leaves all others alone, and so must a detour
        ),
    ),
    "libclew-chunk.so": (
        "chunk",
        ("-shared", "-fPIC", "-nostdlib", "-fvisibility=hidden", "-fno-stack-protector"),
    ),
}

FLAGS = ("-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", f"-I{HERE}")


class NotBuilt(Exception):
    """The witness could not be built; the message says why, for the user to read."""


def build(folder: Path, *, strict: bool = False) -> None:
    """Compile what is out of date into `folder`."""
    compiler = _compiler()
    folder.mkdir(parents=True, exist_ok=True)
    for name in PRODUCTS:
        _product(name, folder, compiler, strict=strict)


def _compiler() -> list[str]:
    system, machine = platform.system(), platform.machine()
    if (system, machine) != ("Linux", "x86_64"):
        raise NotBuilt(
            f"it knows the system calls of Linux on x86-64 only, and this is {system} on {machine}"
        )
    wanted = shlex.split(os.environ.get("CC", "")) or ["cc"]
    for candidate in (wanted, ["gcc"], ["clang"]):
        if shutil.which(candidate[0]):
            return candidate
    raise NotBuilt(f"there is no C compiler ({wanted[0]}, gcc and clang are not in PATH)")


def _product(name: str, folder: Path, compiler: list[str], *, strict: bool) -> None:
    part, flags = PRODUCTS[name]
    sources = sorted((HERE / part).glob("*.c"))
    if not sources:
        raise NotBuilt(f"there are no sources in {HERE / part}")
    target = folder / name
    if target.exists() and target.stat().st_mtime_ns > _newest_source():
        return
    draft = folder / f".{name}.{os.getpid()}"  # renamed into place: never half a program
    words = [*compiler, *FLAGS, *(["-Werror"] if strict else []), *flags, "-o", str(draft)]
    print(shlex.join([*words, *map(str, sources)]), flush=True)
    ran = subprocess.run([*words, *map(str, sources)], stderr=subprocess.PIPE, text=True)
    sys.stderr.write(ran.stderr)
    if ran.returncode:
        draft.unlink(missing_ok=True)
        errors = [line for line in ran.stderr.splitlines() if "error" in line] or ["no message"]
        raise NotBuilt(f"the C compiler failed on {name}: {errors[0]}")
    draft.replace(target)


def _newest_source() -> int:
    return max(
        path.stat().st_mtime_ns for path in HERE.rglob("*") if path.suffix in {".c", ".h", ".py"}
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile the system-call witness.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--strict", action="store_true", help="warnings are errors")
    wanted = parser.parse_args()
    try:
        build(wanted.folder, strict=wanted.strict)
    except NotBuilt as reason:
        print(f"The witness was not built: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
