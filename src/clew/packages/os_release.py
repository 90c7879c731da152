"""Which Linux distribution a root directory holds: its os-release file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def os_release(root: Path) -> dict[str, str]:
    """What `/etc/os-release` says of the distribution."""
    text = ""
    for name in ("etc/os-release", "usr/lib/os-release"):
        with suppress(OSError):
            text = text or (root / name).read_text("utf-8", "replace")
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}
