"""Runs the recorded execution that this file contains, in a sandbox of its own.

Uses the standard library of Python 3.8 or newer only: it runs where Clew is not installed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Dict


def main() -> int:
    with zipfile.ZipFile(sys.argv[0]) as archive:
        execution = json.loads(archive.read("execution.json"))
        options = parse_options(execution)
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            sys.exit("error: bubblewrap is missing (Debian: apt-get install bubblewrap)")
        missing = [n for n in execution["missing_variables"] if n not in os.environ]
        if missing:
            sys.exit(f"error: set {', '.join(missing)}: their values were secret, not recorded")
        if options.keep is not None:
            options.keep.mkdir(parents=True)
            return run(archive, execution, options, bwrap, options.keep)
        with tempfile.TemporaryDirectory(prefix="clew-run-") as root:
            return run(archive, execution, options, bwrap, Path(root))


def parse_options(execution: Dict[str, Any]) -> argparse.Namespace:
    command = " ".join(execution["command"])
    parser = argparse.ArgumentParser(description=f"Run again what was recorded: {command}")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="keep its files in a new directory"
    )
    parser.add_argument("--network", action="store_true", help="allow the network")
    parser.add_argument("--show", action="store_true", help="show what it would run, and stop")
    parser.add_argument("command", nargs="*", help="run another command on the recorded files")
    options = parser.parse_args()
    if options.show:
        print(f"{command}\nin {execution['cwd']}")
        for entry in execution["entries"]:
            print(f"{entry['kind']:<9} {entry['size']:>12} {entry['path']}")
        sys.exit(0)
    return options


def run(
    archive: zipfile.ZipFile,
    execution: Dict[str, Any],
    options: argparse.Namespace,
    bwrap: str,
    root: Path,
) -> int:
    for entry in execution["entries"]:
        lay_out(archive, entry, root)
    for entry in reversed(execution["entries"]):  # after all files below a directory are there
        if entry["kind"] == "directory":
            (root / entry["path"].lstrip("/")).chmod(entry["mode"] | 0o700)
    uid, gid = execution["user"]
    words = [bwrap, "--bind", str(root), "/", "--proc", "/proc", "--dev", "/dev"]
    words += ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    words += ["--share-net"] if options.network else []
    words += ["--uid", str(uid), "--gid", str(gid), "--chdir", execution["cwd"], "--"]
    secret = {name: os.environ[name] for name in execution["missing_variables"]}
    variables = {**execution["variables"], **secret}
    command = options.command or execution["command"]
    return subprocess.run([*words, *command], env=variables, check=False).returncode


def lay_out(archive: zipfile.ZipFile, entry: Dict[str, Any], root: Path) -> None:
    path = root / entry["path"].lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry["kind"] == "directory":
        path.mkdir(exist_ok=True)
        return
    if entry["kind"] == "link":
        path.symlink_to(entry["target"])
        return
    with open(path, "wb") as file:
        if entry["content"] is None:  # known by its size alone
            file.truncate(entry["size"])
        else:
            with archive.open(entry["content"]) as content:
                shutil.copyfileobj(content, file)
    path.chmod(entry["mode"])
    os.utime(path, ns=(entry["mtime"], entry["mtime"]))


if __name__ == "__main__":
    sys.exit(main())
