"""The one thing `pyproject.toml` cannot say: compile the witness while the package is built.

Without a compiler, or on another kind of machine, the package is built all the same, without the
witness. The build says so, and `clew/_native/not-built.txt` keeps the reason for `clew exec`
to tell, because pip shows nothing of a build that succeeds.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "native"))

import build as native  # noqa: E402  (the path comes first)


class BuildWithWitness(build_py):
    """Build the Python files as usual, then the witness beside them."""

    def run(self) -> None:
        super().run()
        base = ROOT / "src" if self.editable_mode else Path(self.build_lib)
        folder = base / "clew" / "_native"
        if not self.editable_mode:
            shutil.rmtree(folder, ignore_errors=True)  # nothing from an earlier build slips in
        folder.mkdir(parents=True, exist_ok=True)
        excuse = folder / "not-built.txt"
        excuse.unlink(missing_ok=True)
        try:
            native.build(folder)
        except native.NotBuilt as reason:
            for name in native.PRODUCTS:  # half a witness is none
                (folder / name).unlink(missing_ok=True)
            excuse.write_text(f"{reason}\n")
            print(
                "\n*** clew: the system-call witness was NOT built: "
                f"{reason}\n*** Everything but `clew exec` works. For `clew exec`, install a C "
                "compiler (Debian: apt-get install gcc libc6-dev) and install clew again.\n",
                file=sys.stderr,
                flush=True,
            )


class Wheel(bdist_wheel):
    """One wheel for every Python 3; with the native programs, for every Linux of one architecture.

    The programs are static and the libraries need no libc, so they run with any: the tag names the
    oldest glibc that current versions of pip know.
    """

    def get_tag(self) -> tuple[str, str, str]:
        built = (Path(self.bdist_dir) / "clew" / "_native" / "clew-trace").exists()
        return "py3", "none", f"manylinux_2_17_{native.target_machine()}" if built else "any"


class WithPrograms(Distribution):
    """Programs, not extension modules, are compiled here; they need their architecture as much."""

    def has_ext_modules(self) -> bool:
        return True


setup(distclass=WithPrograms, cmdclass={"build_py": BuildWithWitness, "bdist_wheel": Wheel})
