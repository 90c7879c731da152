"""Records of executions that never ran, told in a few words, to decide on."""

from itertools import count
from typing import Any

from blake3 import blake3

from clew.prov.queries.execution_record import Activity, Edge, ExecutionRecord, Gap, Look, Version
from clew.prov.queries.executions import ExecutionRef

CONTENTS: dict[str, bytes] = {}
"""All that any run met."""


def read(digest: str) -> bytes | None:
    return CONTENTS.get(digest)


def digest(content: bytes) -> str:
    name = f"blake3:{blake3(content).hexdigest()}"
    CONTENTS[name] = content
    return name


class RecordBuilder:
    """One execution. Time goes by with every word about it."""

    def __init__(
        self,
        *command: str,
        number: int = 1,
        cwd: str = "/w",
        variables: dict[str, str] | None = None,
        facets: dict[str, Any] | None = None,
    ) -> None:
        self._clock = count(number * 10**15, 10**9)
        self._keys = count(1)
        self.number = number
        self.uid = f"{number:032x}"
        self.facets = facets or {}
        self.versions: dict[int, Version] = {}
        self.used: list[Edge] = []
        self.generated: list[Edge] = []
        self.invalidated: list[Edge] = []
        self.looked: list[Look] = []
        self.informed: list[tuple[int, int, int, str]] = []
        self.gaps: list[Gap] = []
        self.top = next(self._keys)
        self.activities = {
            self.top: self._activity(
                self.top, "execution", None, None, list(command), None, cwd, variables or {}
            )
        }

    def now(self) -> int:
        return next(self._clock)

    def _activity(
        self,
        key: int,
        kind: str,
        number: int | None,
        parent: int | None,
        command: list[str],
        exe: str | None,
        cwd: str | None,
        variables: dict[str, str],
    ) -> Activity:
        return Activity(
            key=key, uid=self.uid if parent is None else f"boot-{key}-1-0", kind=kind,
            number=number, parent=parent, agent=None, command=command, exe=exe, cwd=cwd,
            started=self.now(), ended=None, status=None, signal=None, environment=dict(variables),
        )  # fmt: skip

    def process(
        self, *command: str, parent: int | None = None, forked: bool = False, **variables: str
    ) -> int:
        key = next(self._keys)
        exe = None if forked else f"/usr/bin/{command[0]}"
        self.activities[key] = self._activity(
            key, "process", len(self.activities), parent or self.top, list(command), exe,
            self.activities[self.top].cwd, variables,
        )  # fmt: skip
        return key

    def becomes(self, process: int, *command: str) -> int:
        """It calls exec."""
        key = self.process(*command, parent=process)
        stem, _, ordinal = self.activities[process].uid.rpartition("-")
        self.activities[key] = self.activities[key]._replace(uid=f"{stem}-{int(ordinal) + 1}")
        return key

    def ends(self, process: int, status: int = 0) -> None:
        self.activities[process] = self.activities[process]._replace(
            ended=self.now(), status=status
        )

    def _locator(self, path: str) -> str:
        return f"file://machine{path}" if path.startswith("/") else f"stream://{self.uid}/{path}"

    def version(
        self,
        path: str,
        content: bytes | None,
        *,
        maker: int | None = None,
        mode: int = 0o100644,
        package: str | None = None,
    ) -> int:
        locator = self._locator(path)
        key = next(self._keys)
        line = [v for v in self.versions.values() if v.locator == locator]
        known = content is not None
        self.versions[key] = Version(
            key=key, locator=locator, ordinal=len(line) + 1, maker=maker or self.top,
            found=maker is None, at=self.now(), digest=digest(content) if known else None,
            size=len(content) if content is not None else None, mode=mode if known else None,
            mtime=0, stored=known, package=package,
        )  # fmt: skip
        return key

    def reads(
        self, process: int, path: str, content: bytes | None = b"", package: str | None = None
    ) -> int:
        """It opens what is there: the last version, or else a file that was there before."""
        line = [v for v in self.versions.values() if v.locator == self._locator(path)]
        key = line[-1].key if line else self.version(path, content, package=package)
        self.used.append(Edge(process, key, self.now(), "open"))
        return key

    def writes(
        self, process: int, path: str, content: bytes | None, how: str = "write", **more: Any
    ) -> int:
        key = self.version(path, content, maker=process, **more)
        at = self.now()
        self.versions[key] = self.versions[key]._replace(mtime=at)
        self.generated.append(Edge(process, key, at, how))
        return key

    def also_writes(self, process: int, version: int, how: str = "inherited") -> None:
        self.generated.append(Edge(process, version, self.now(), how))

    def prints(self, content: bytes, *processes: int, stream: str = "stdout") -> int:
        key = self.version(stream, content)
        for process in processes:
            self.generated.append(Edge(process, key, self.now(), "inherited"))
        return key

    def printed(self, process: int, since: int, until: int, stream: str = "stdout") -> None:
        """This part of a stream is its own."""
        output = {"begun": {"output": {stream: [since, until]}}}
        self.activities[process] = self.activities[process]._replace(facets=output)

    def renames(self, process: int, version: int, to: str, content: bytes) -> int:
        at = self.now()
        key = self.version(to, content, maker=process)
        self.used.append(Edge(process, version, at, "rename"))
        self.generated.append(Edge(process, key, at, "rename"))
        self.invalidated.append(Edge(process, version, at, "rename"))
        return key

    def removes(self, process: int, version: int) -> None:
        self.invalidated.append(Edge(process, version, self.now(), "delete"))

    def looks(self, process: int, kind: str, path: str, answer: str = "") -> None:
        self.looked.append(Look(process, self._locator(path), kind, self.now(), answer))

    def lists(self, process: int, path: str, *names: str) -> None:
        answer = digest(b"\0".join(sorted(name.encode() for name in names)))
        self.looks(process, "listing", path, answer)

    def passes(self, source: int, to: int, via: str = "pipe") -> None:
        self.informed.append((to, source, self.now(), via))

    def record(self, status: int = 0) -> ExecutionRecord:
        """The record, now that all has ended."""
        for key, activity in self.activities.items():
            became = any(
                a.uid.rpartition("-")[0] == activity.uid.rpartition("-")[0] and a.key > key
                for a in self.activities.values()
            )
            if activity.ended is None and key != self.top and not became:
                self.ends(key)
        self.ends(self.top, status)
        return ExecutionRecord(
            execution=ExecutionRef(self.top, self.uid, self.number),
            facets=self.facets,
            activities=self.activities,
            versions=dict(sorted(self.versions.items(), key=lambda v: v[1][1:3])),
            used=self.used,
            generated=self.generated,
            invalidated=self.invalidated,
            looked=self.looked,
            informed=self.informed,
            gaps=self.gaps,
        )
