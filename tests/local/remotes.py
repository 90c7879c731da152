"""Remotes for tests of push and pull: in a directory and in a real S3 server."""

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.driver import Project
from tests.wait import wait_until

from clew.documents.document import encode
from clew.store.packs import pack_format

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "s3-secret-of-the-tests"}


class S3Server:
    """`rclone serve s3`: buckets are folders below `root`; signatures are checked."""

    def __init__(self, root: Path, *, address: str = "127.0.0.1") -> None:
        self.root = root
        self._address = address
        (root / "bucket").mkdir(parents=True)
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        words = [Path(sys.executable).with_name("rclone"), "serve", "s3", self.root]
        words += ["--auth-key", ",".join(KEYS.values()), "--addr", f"{self._address}:{self._port}"]
        self._process = subprocess.Popen(
            words,
            env={**os.environ, "RCLONE_CONFIG": os.devnull, "HOME": str(self.root.parent)},
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if found := re.search(rf"on \[http://{re.escape(self._address)}:(\d+)/\]", line):
                self._port = int(found[1])
                return
        raise AssertionError("the S3 server did not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    @property
    def environment(self) -> dict[str, str]:
        return {**KEYS, "AWS_ENDPOINT_URL": f"http://{self._address}:{self._port}"}


@dataclass(frozen=True)
class Remote:
    """A remote, and its objects on disk."""

    url: str
    path: Path
    """The directory with its objects."""
    environment: dict[str, str] = field(default_factory=dict)
    server: S3Server | None = None

    def objects(self) -> dict[str, int]:
        """The name of every object, and when it was written."""
        found = (path for path in self.path.rglob("*") if path.is_file())
        return {
            str(path.relative_to(self.path)): path.stat().st_mtime_ns
            for path in found
            if path.name[0] != "."
        }

    def arrived(self) -> dict[str, int]:
        """The objects that the next push need not write again."""
        found = self.objects()
        whole = {name[7:] for name in found if name.startswith("tables/")}
        return {n: at for n, at in found.items() if n == "format" or Path(n).stem in whole}

    def size(self, names: Iterable[str] | None = None) -> int:
        """The size of these objects, or of all."""
        chosen = self.objects() if names is None else names
        return sum((self.path / name).stat().st_size for name in chosen)

    def tables(self) -> int:
        return sum(name.startswith("tables/") for name in self.objects())

    def bytes(self) -> Iterator[tuple[str, bytes]]:
        """The uncompressed content of every object."""
        for name in self.objects():
            path = self.path / name
            if not name.startswith("packs/"):
                yield name, path.read_bytes()
                continue
            for block in pack_format.read_table(path).blocks:
                yield (
                    name,
                    pack_format.read_block(
                        path,
                        position=block.position,
                        stored=block.stored,
                        length=block.length,
                        codec=block.codec,
                    ),
                )


@contextmanager
def directory_remote(tmp_path: Path) -> Iterator[Remote]:
    yield Remote(str(tmp_path / "remote"), tmp_path / "remote")


@contextmanager
def s3_remote(tmp_path: Path) -> Iterator[Remote]:
    server = S3Server(tmp_path / "s3")
    try:
        path = tmp_path / "s3" / "bucket" / "some" / "prefix"
        yield Remote("s3://bucket/some/prefix", path, server.environment, server)
    finally:
        server.stop()


REMOTES = {"folder": directory_remote, "s3": s3_remote}


def project_with_remote(place: Path, remote: Remote, **environment: str) -> Project:
    return Project(place, **{**remote.environment, **environment})


def write_random_file(clew: Project, name: str, size: int, seed: int = 1) -> bytes:
    """A file that does not compress."""
    data = random.Random(seed).randbytes(size)
    (clew.folder / name).write_bytes(data)
    return data


def executions_by_uid(clew: Project) -> dict[str, Any]:
    """Every execution of a project in full, by uid, without its local ids."""
    found = {}
    with clew.opened() as opened:
        for execution in opened.executions():
            shown = json.loads(encode(execution.details))
            del shown["id"], shown["collection"], shown["made_elsewhere"], shown["signed_by"]
            for process in shown["tree"]:
                process["id"] = process["id"].partition(".")[2]
                process["parent"] = (process["parent"] or "").partition(".")[2]
            shown["network"] = [{**peer, "by": ""} for peer in shown["network"]]
            found[shown["uid"]] = shown
    return found


def verified_executions(clew: Project) -> tuple[dict[str, Any], dict[str, Any]]:
    """The executions by uid and by id, after a check that all content is intact."""
    with clew.opened() as opened:
        assert opened.fsck().problems == ()
        listed = {found.id: found.as_json() for found in opened.executions()}
    return executions_by_uid(clew), listed


def wait_for_packs(remote: Remote, count: int) -> None:
    wait_until(f"{count} packs at the remote", lambda: remote.tables() >= count)
