"""Debian packages of aarch64, downloaded and unpacked without installing them.

apt gets directories of its own, so the packages of this machine are neither read nor changed. The
scripts of the packages are not run: they are programs of another architecture.
"""

import os
import subprocess
from pathlib import Path
from typing import IO

SUITE = "bookworm"
PACKAGES = (
    *("base-files", "bubblewrap", "busybox-static", "coreutils", "dash", "linux-image-arm64"),
    *("mount", "python3", "util-linux"),
)
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_LEFT_OUT = ("usr/share/doc", "usr/share/locale", "usr/share/man")
_MERGED = ("bin", "lib", "sbin")  # links to the directory of the same name in /usr


def unpack(root: Path, cache: Path) -> None:
    """Make `root` a file system with PACKAGES and all that they depend on, as dpkg would."""
    archives = _download(cache)
    for name in _MERGED:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    database = root / "var/lib/dpkg"
    (database / "info").mkdir(parents=True)
    for archive in archives:
        _unpack_one(archive, root, database)
    shell = root / "usr/bin/sh"
    if not shell.is_symlink():  # a script of the package makes it
        shell.symlink_to("dash")


def _download(cache: Path) -> list[Path]:
    for name in ("lists/partial", "archives/partial"):
        (cache / name).mkdir(parents=True, exist_ok=True)
    (cache / "status").touch()
    source = f"deb [signed-by={_KEYRING}] http://deb.debian.org/debian {SUITE} main\n"
    (cache / "sources.list").write_text(source)
    settings = {
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Install-Recommends": "false",
        "Dir::Cache": cache,
        "Dir::State": cache,
        "Dir::State::status": cache / "status",
        "Dir::Etc::sourcelist": cache / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
    }
    config = cache / "apt.conf"
    config.write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
    environ = {**os.environ, "APT_CONFIG": os.fspath(config)}
    for words in (["update"], ["install", "--download-only", "--yes", *PACKAGES]):
        subprocess.run(["apt-get", "-qq", *words], env=environ, check=True)
    return sorted((cache / "archives").glob("*.deb"))


def _unpack_one(archive: Path, root: Path, database: Path) -> None:
    """Unpack the files, and add the package to dpkg's database, which Clew reads."""
    tar = ["tar", "--extract", "--verbose", "--keep-directory-symlink", "--directory", root]
    with subprocess.Popen(
        ["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE
    ) as unpacked:
        listing = _output(
            *tar, *(f"--exclude=./{path}" for path in _LEFT_OUT), file=unpacked.stdout
        )
    paths = "".join(f"{line[1:].rstrip('/') or '/.'}\n" for line in listing.splitlines())
    name = _output("dpkg-deb", "--field", archive, "Package").strip()
    (database / "info" / f"{name}.list").write_text(paths)
    with (database / "status").open("a") as status:
        fields = _output("dpkg-deb", "--field", archive)
        status.write(f"{fields.rstrip()}\nStatus: install ok installed\n\n")


def _output(*words: str | Path, file: IO[bytes] | None = None) -> str:
    return subprocess.run(words, stdin=file, stdout=subprocess.PIPE, check=True, text=True).stdout
