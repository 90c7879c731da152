"""Read the os-release file, which names the Linux distribution."""

from contextlib import suppress
from pathlib import Path


def read_os_release(root: Path) -> dict[str, str]:
    """The fields of `/etc/os-release`."""
    text = ""
    for name in ("etc/os-release", "usr/lib/os-release"):
        with suppress(OSError):
            text = text or (root / name).read_text("utf-8", "replace")
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}
