"""Make the kernel known to Jupyter: a directory with `kernel.json`, beside the stock kernel's.

JupyterLab, VS Code, nbconvert and papermill find kernels by these directories. None of Jupyter's
packages is needed to write one.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from clew.errors import ClewError, UsageError

KERNEL = "clew-python3"
DISPLAY_NAME = "Python 3 (Clew)"
_PROBE = "import ipykernel, IPython, jupyter_client"
_PROBE_SECONDS = 60


class InstalledKernel(Struct, frozen=True):
    """Where a kernel was installed, and which Python its notebooks run in."""

    name: str
    display_name: str
    path: str
    python: str

    def as_json(self) -> dict[str, str]:
        return {
            "name": self.name,
            "display_name": self.display_name,
            "path": self.path,
            "python": self.python,
        }


def install_kernel(kernels: Path, *, python: str | None = None) -> InstalledKernel:
    """Write the kernel's directory below `kernels`; replaces an earlier one."""
    chosen = find_python(python)
    document = {
        "argv": [
            *(sys.executable, "-m", "clew", "kernel", "start"),
            *("--python", chosen, "--", "-f", "{connection_file}"),
        ],
        "display_name": DISPLAY_NAME,
        "language": "python",
        "metadata": {"debugger": True},
    }
    place = kernels / KERNEL
    try:
        place.mkdir(parents=True, exist_ok=True)
        draft = place / "kernel.json.new"
        draft.write_text(json.dumps(document, indent=1) + "\n")
        draft.rename(place / "kernel.json")
    except OSError as error:
        raise ClewError(
            f"{place} cannot be written: {error.strerror}",
            hint="clew kernel install --user writes to your home directory",
        ) from error
    return InstalledKernel(KERNEL, DISPLAY_NAME, str(place), chosen)


def find_user_kernels(environ: Mapping[str, str]) -> Path:
    """Where Jupyter looks for the kernels of this user."""
    if data := environ.get("JUPYTER_DATA_DIR"):
        return Path(data) / "kernels"
    data = environ.get("XDG_DATA_HOME") or str(Path.home() / ".local/share")
    return Path(data) / "jupyter/kernels"


def find_prefix_kernels(prefix: str | None = None) -> Path:
    """Where Jupyter looks below a prefix; by default, that of this Python."""
    return Path(prefix or sysconfig.get_path("data")) / "share/jupyter/kernels"


def find_python(python: str | None = None) -> str:
    """The Python for notebooks: the given one, this one, or that of the PATH. It has ipykernel."""
    if python is not None:
        path = shutil.which(python)
        if path is None or not _has_ipykernel(path):
            raise UsageError(
                f"{python} cannot run notebooks",
                hint=f"{python} -m pip install ipykernel",
            )
        return os.path.abspath(path)
    for candidate in (sys.executable, shutil.which("python3"), shutil.which("python")):
        if candidate and _has_ipykernel(candidate):
            return os.path.abspath(candidate)
    raise UsageError(
        "no Python here has ipykernel, which runs notebooks",
        hint="pip install ipykernel, or name another Python with --python",
    )


def _has_ipykernel(python: str) -> bool:
    try:
        tried = subprocess.run(
            [python, "-c", _PROBE], capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0
