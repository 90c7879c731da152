"""Rules for differences that do not matter: built-in ones and those of the project.

A rule has a name, applies to some paths, and removes something from a file. Contents that are equal
afterwards are *equivalent* by that rule, never identical. Rules are bounded: a file that is too
large, a broken format or a pattern that takes too long is skipped, and the files stay different.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from clew.errors import ClewError
from clew.project_directory import Ignore
from clew.replay.compare import normalizers
from clew.replay.compare.normalizers import NotApplicable

MAX_SIZE = 32 << 20
"""Larger files are compared by digest only."""

_PATTERN_TIMEOUT = 5.0
_LOGS = ("*.log", "*.log.*", "stdout", "stderr")
_STREAMS = ("stdout", "stderr")


@dataclass(frozen=True)
class Rule:
    """A difference to ignore, and the paths it applies to. The globs match the whole path."""

    name: str
    paths: tuple[str, ...]
    what: str
    normalize: Callable[[bytes], bytes]

    def applies_to(self, path: str) -> bool:
        return any(fnmatchcase(path, glob) for glob in self.paths)


def _built_in(
    name: str, normalize: Callable[[bytes], bytes], paths: tuple[str, ...] = ("*",)
) -> Rule:
    return Rule(name, paths, (normalize.__doc__ or "").rstrip("."), normalize)


BUILT_IN = (
    _built_in("zip", normalizers.normalize_zip),
    _built_in("tar", normalizers.normalize_tar),
    _built_in("gzip", normalizers.normalize_gzip),
    _built_in("ar", normalizers.normalize_ar),
    _built_in("pyc", normalizers.normalize_pyc, ("*.pyc",)),
    _built_in("notebook", normalizers.normalize_notebook, ("*.ipynb",)),
    _built_in("png", normalizers.normalize_png),
    _built_in("pdf", normalizers.normalize_pdf),
    _built_in("svg", normalizers.normalize_svg, ("*.svg",)),
    _built_in("terminal", normalizers.normalize_line_ends, _STREAMS),
    _built_in("times", normalizers.normalize_times, _LOGS),
    _built_in("durations", normalizers.normalize_durations, _LOGS),
    _built_in("addresses", normalizers.normalize_addresses, _LOGS),
)


def load_rules(own: Sequence[Ignore]) -> tuple[Rule, ...]:
    """The project's rules, then the built-in ones."""
    return (*(_project_rule(ignore) for ignore in own), *BUILT_IN)


def _project_rule(ignore: Ignore) -> Rule:
    try:
        re.compile(ignore.pattern.encode())
    except (re.error, OverflowError, RecursionError) as error:
        raise ClewError(
            f"the rule {ignore.name} has a pattern that cannot be read: {error}",
            hint="repair [[compare.rules]] in .clew/config.toml",
        ) from error
    what = f"What matches {ignore.pattern}"
    return Rule(
        ignore.name, ignore.paths, what, lambda content: _remove_pattern(ignore.pattern, content)
    )


def find_equivalence(rules: Sequence[Rule], path: str, a: bytes, b: bytes) -> str | None:
    """The names of the rules by which two contents are equal; None if they differ."""
    fit = [rule for rule in rules if rule.applies_to(path)]
    needed: list[Rule] = []
    left = (a, b)
    for rule in fit:
        after = _apply(rule, left)
        if after is not None and after != left:
            needed.append(rule)
            left = after
        if left[0] == left[1]:
            return ", ".join(rule.name for rule in _drop_redundant(needed, a, b))
    return None


def _drop_redundant(needed: list[Rule], a: bytes, b: bytes) -> list[Rule]:
    """Drop rules whose effect the others have as well."""
    for rule in needed:
        others = [other for other in needed if other is not rule]
        left: tuple[bytes, bytes] | None = (a, b)
        for other in others:
            left = _apply(other, left) if left else None
        if left is not None and left[0] == left[1]:
            return _drop_redundant(others, a, b)
    return needed


def _apply(rule: Rule, both: tuple[bytes, bytes]) -> tuple[bytes, bytes] | None:
    try:
        return rule.normalize(both[0]), rule.normalize(both[1])
    except NotApplicable:
        return None


_SUBSTITUTE_SCRIPT = """
import re, sys
content = sys.stdin.buffer.read()
sys.stdout.buffer.write(re.sub(sys.argv[1].encode(), b"", content, flags=re.MULTILINE))
"""


def _remove_pattern(pattern: str, content: bytes) -> bytes:
    """Run the pattern in a process of its own: some never end, and nothing else stops them."""
    command = (sys.executable, "-I", "-S", "-c", _SUBSTITUTE_SCRIPT, pattern)
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=_PATTERN_TIMEOUT, check=True
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise NotApplicable from error
    return done.stdout
