"""Compare what two executions left: identical, equivalent, or different.

Outputs are compared by digest. Only if the digests differ are the bytes read, to apply the rules
and to show small texts line by line. File times are not compared: they differ in every execution.
"""

import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff

from msgspec import UNSET

from clew.documents.comparisons.differences import Difference, Verdict
from clew.documents.ids import Digest, Locator
from clew.prov.locators import path_of
from clew.prov.queries.execution_record import Activity, ExecutionRecord, Version
from clew.prov.queries.formats import STREAM, path_fields
from clew.replay.compare import volatile_rules
from clew.replay.compare.entity_names import EntityNames
from clew.replay.compare.volatile_rules import Rule
from clew.safe_path import KERNEL_DIRECTORIES

ReadContent = Callable[[Digest], bytes | None]
"""Reads the bytes of a digest; None if they are not stored."""

_MASKED_SECRETS = "secrets"
"""The rule for contents that differ only in masked secrets."""
_MAX_TEXT_BYTES = 64 << 10
_MAX_TEXT_LINES = 2000
_MAX_DIFF_LINES = 60
_READ_BUDGET = 256 << 20
"""Bytes to read for rules in one comparison; beyond it only digests are compared."""


@dataclass(frozen=True)
class Comparison:
    differences: tuple[Difference, ...]

    @property
    def verdict(self) -> Verdict:
        if not self.differences:
            return "identical"
        same = all(difference.kind == "equivalent" for difference in self.differences)
        return "equivalent" if same else "different"

    @property
    def significant(self) -> list[Difference]:
        """Differences that no rule covers."""
        return [difference for difference in self.differences if difference.kind != "equivalent"]


def compare(
    a: ExecutionRecord, b: ExecutionRecord, read: ReadContent, rules: Sequence[Rule]
) -> Comparison:
    """Compare what `b` left and how it ended with `a`."""
    return Comparison(tuple(_Comparer(a, b, read, rules).differences()))


class _Comparer:
    def __init__(
        self, a: ExecutionRecord, b: ExecutionRecord, read: ReadContent, rules: Sequence[Rule]
    ) -> None:
        self._a, self._b = a, b
        self._names = EntityNames(a, b)
        self._contents = ContentComparer(read, rules)

    def differences(self) -> Iterator[Difference]:
        if any(gap.what == "trace" for gap in (*self._a.gaps, *self._b.gaps)):
            # not seen to its end
            yield Difference(path="trace", kind="unknown", a=None, b=None)
        codes = exit_code(self._a.itself), exit_code(self._b.itself)
        if codes[0] != codes[1]:
            yield Difference(path="exit status", kind="status", a=codes[0], b=codes[1])
        left_a = {self._names.a(locator): v for locator, v in _outputs(self._a)}
        left_b = {self._names.b(locator): v for locator, v in _outputs(self._b)}
        # streams first, then files
        for name in sorted(left_a.keys() | left_b.keys(), key=lambda n: (n.startswith("/"), n)):
            yield from self._outputs(name, left_a.get(name), left_b.get(name))
        gone_a = {self._names.a(locator): v for locator, v in find_removed_files(self._a).items()}
        gone_b = {self._names.b(locator): v for locator, v in find_removed_files(self._b).items()}
        for name in sorted(gone_a.keys() ^ gone_b.keys()):
            there = gone_a.get(name) or gone_b[name]
            if name not in left_a and name not in left_b:
                a, b = (None, there.digest) if name in gone_a else (there.digest, None)
                yield Difference(**path_fields(there.locator), kind="removed", a=a, b=b)

    def _outputs(self, name: str, a: Version | None, b: Version | None) -> Iterator[Difference]:
        if a is None or b is None:
            there = a or b
            assert there is not None
            if is_stream(there) and there.digest is None:
                return  # nothing was written to it
            kind = "extra" if a is None else "missing"
            path = path_fields(there.locator)
            yield Difference(**path, kind=kind, a=a and a.digest, b=b and b.digest)
            return
        yield from self._contents.difference(name, a, b)
        if a.mode and b.mode and stat.S_IMODE(a.mode) != stat.S_IMODE(b.mode) and not is_stream(a):
            modes = [f"{stat.S_IMODE(mode):04o}" for mode in (a.mode, b.mode)]
            yield Difference(**path_fields(a.locator), kind="mode", a=modes[0], b=modes[1])


class ContentComparer:
    """Compares the bytes of versions, up to a total size."""

    def __init__(self, read: ReadContent, rules: Sequence[Rule]) -> None:
        self._read = read
        self._rules = rules
        self._budget = _READ_BUDGET

    def difference(self, name: str, a: Version, b: Version) -> Iterator[Difference]:
        path = path_fields(a.locator)
        if a.digest == b.digest:
            if a.digest is None and not is_stream(a):
                yield Difference(**path, kind="unknown", a=None, b=None)
            return
        if not (a.digest and b.digest) and not is_stream(a):
            yield Difference(**path, kind="unknown", a=a.digest, b=b.digest)
            return
        both = self._bytes(a), self._bytes(b)
        rule: str | None = None
        lines: tuple[str, ...] = ()
        if both[0] is not None and both[1] is not None:
            rule = _MASKED_SECRETS  # equal as they were read: masked
            if both[0] != both[1]:
                rule = volatile_rules.find_equivalence(
                    self._rules, path_fields(a.locator)["path"], both[0], both[1]
                )
            lines = diff_text(both[0], both[1], path["path"])
        kind = "content" if rule is None else "equivalent"
        yield Difference(
            **path, kind=kind, a=a.digest, b=b.digest, rule=rule or UNSET, lines=lines or UNSET
        )

    def equivalent(self, a: Version, b: Version) -> bool:
        """Whether a rule covers the difference between two versions of a file."""
        if not (a.digest and b.digest):
            return False
        both = self._bytes(a), self._bytes(b)
        if both[0] is None or both[1] is None:
            return False
        path = path_fields(a.locator)["path"]
        return volatile_rules.find_equivalence(self._rules, path, both[0], both[1]) is not None

    def _bytes(self, version: Version) -> bytes | None:
        if version.digest is None:
            return b""
        size = version.size or 0
        if not version.stored or size > volatile_rules.MAX_SIZE or size > self._budget:
            return None
        self._budget -= size
        return self._read(version.digest)


def _outputs(record: ExecutionRecord) -> Iterator[tuple[Locator, Version]]:
    """Its outputs, except devices and kernel files: their content is not recorded."""
    for locator, version in record.left.items():
        if not (path_of(locator) or b"").startswith(KERNEL_DIRECTORIES):
            yield locator, version


def exit_code(activity: Activity) -> int | None:
    """The exit status as a shell reports it; None if no end was recorded."""
    return 128 + activity.signal if activity.signal else activity.status


def find_removed_files(record: ExecutionRecord) -> dict[Locator, Version]:
    """By locator, the files that it found and removed."""
    gone = {edge.version for edge in record.invalidated}
    lines = record.lines.items()
    return {where: v[0] for where, v in lines if v[0].found and v[-1].key in gone}


def is_stream(version: Version) -> bool:
    return version.locator.startswith(STREAM)


def diff_text(a: bytes, b: bytes, path: str) -> tuple[str, ...]:
    """Differences as `diff -u` writes them; empty unless both are small texts."""
    if max(len(a), len(b)) > _MAX_TEXT_BYTES or b"\0" in a + b:
        return ()
    try:
        before, after = a.decode().splitlines(), b.decode().splitlines()
    except UnicodeDecodeError:
        return ()
    if max(len(before), len(after)) > _MAX_TEXT_LINES:
        return ()
    lines = list(unified_diff(before, after, path, path, n=2, lineterm=""))
    if len(lines) > _MAX_DIFF_LINES:
        lines[_MAX_DIFF_LINES:] = [f"… {len(lines) - _MAX_DIFF_LINES} more lines"]
    return tuple(lines)
