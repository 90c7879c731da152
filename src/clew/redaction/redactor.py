"""Keeps secret values out of the record.

A variable is secret when its name says so, when the user's own patterns say so, or when its
value is of a kind that is never anything else (an access token, a private key, an address
with a password in it). So is the value of an option such as `--password`. Such values are replaced
by a fixed mask in the recorded environment, in recorded arguments and in kept output.
`docs/reference/redaction.md` is the list in prose.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

from blake3 import blake3

from clew.redaction.encodings import encodings
from clew.redaction.masking import MASK, Stream, mask
from clew.redaction.names import is_secret_variable
from clew.redaction.text_scan import (
    Finding,
    find_in_words,
    mask_url,
    merged,
    passwords,
    secret_parts,
)
from clew.settings import without_own

SHORTEST = 6
"""Shorter values are masked in the environment but not searched for in text: `1` is everywhere."""

_Text = TypeVar("_Text", str, bytes)


class Arguments(NamedTuple):
    """The words of a command as they are recorded."""

    words: tuple[str, ...]
    secrets: dict[str, list[str | None]]
    """By the number of a word that holds secrets: the name of each mask in it, in order; None for
    a mask that the word had itself."""


class Redactor:
    """Knows one environment's secrets; masks them wherever they would be recorded."""

    def __init__(
        self, environ: Mapping[str, str], patterns: Iterable[str] = (), *, key: bytes = b""
    ) -> None:
        """`key`: known to the project alone; with it, two secrets can be told apart later."""
        self._patterns = tuple(patterns)
        self._key = blake3(key).digest() if key else None
        self.names: frozenset[str] = frozenset()
        """The variables whose values are masked."""
        self._judged: dict[tuple[str, str], bool] = {}  # most processes have the same variables
        self._named: dict[str, str] = {}
        self._values: set[str] = set()
        self._secrets: list[bytes] = []
        self._texts: list[str] = []
        self._masked: dict[tuple[str, str], str] = {}
        self.learn(environ)

    def learn(self, environ: Mapping[str, str]) -> None:
        """From now on mask the secrets of this environment, too: that of a process which was given
        secrets of its own."""
        self.add_secrets({n: v for n, v in environ.items() if self._secret(n, v)})

    def add_secrets(self, secrets: Mapping[str, str]) -> None:
        """From now on mask these values, whatever their names are: the variables that a user gave
        to a command as secrets. Streams that were made before do not mask them."""
        secrets = {name: value for name, value in secrets.items() if value and value != MASK}
        self.names |= secrets.keys()
        for name, value in secrets.items():
            self._named.setdefault(name, value)
        self.add_values(secrets.values())

    def add_values(self, values: Iterable[str]) -> None:
        """As `add_secrets`, of values without names."""
        fresh = set(values) - self._values
        if not fresh:
            return
        self._values |= fresh
        found = {spelling for value in fresh for spelling in _spellings(value)}
        self._secrets = sorted(found.union(self._secrets), key=lambda text: (-len(text), text))
        self._texts = [text.decode(errors="surrogateescape") for text in self._secrets]
        self._masked.clear()

    def _secret(self, name: str, value: str) -> bool:
        if not value or value == MASK:
            return False
        judged = self._judged.get((name, value))
        if judged is None:
            judged = is_secret_variable(name, self._patterns) or any(secret_parts(value))
            self._judged[name, value] = judged
        return judged

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The variables, with a mask in place of each secret value, and without Clew's own."""
        return {n: self._variable(n, v) for n, v in without_own(variables).items()}

    def _variable(self, name: str, value: str) -> str:
        masked = self._masked.get((name, value))
        if masked is None:
            hide = name in self.names or self._secret(name, value)
            masked = self._masked[name, value] = MASK if hide else self.text(value)
        return masked

    def seals(self, variables: Mapping[str, str]) -> dict[str, str]:
        """For each variable of which something is masked, what tells whether it is the same another
        time, to who has the key; to others it tells nothing."""
        if self._key is None:
            return {}
        masked = (name for name, value in self.environment(variables).items() if MASK in value)
        return {
            name: blake3(f"{name}\0{variables[name]}".encode(), key=self._key).hexdigest(length=16)
            for name in masked
        }

    def text(self, text: _Text) -> _Text:
        """The text with every secret value in it masked."""
        if not self._secrets:
            return text
        if isinstance(text, bytes):
            return mask(self._secrets, text)
        masked = mask(self._secrets, text.encode(errors="surrogateescape"))
        return masked.decode(errors="surrogateescape")

    def learn_command(self, words: Sequence[str]) -> dict[int, list[Finding]]:
        """From now on mask the values that these words give to options and variables. Returns what
        was found, by the number of the word."""
        found = dict(find_in_words(words, self._patterns))
        for number, findings in found.items():
            word = words[number]
            self.add_values(passwords(word))
            for one in findings:
                if one.name:
                    value = word[one.start : one.end]
                    self.add_secrets({self._name(one.name, value, number): value})
        return found

    def arguments(self, words: Sequence[str]) -> Arguments:
        """The words of a command with every secret in them masked."""
        found = self.learn_command(words)
        masked = list(words)
        secrets: dict[str, list[str | None]] = {}
        joined = " ".join(words)
        known = [text for text in self._texts if text in joined]
        for number, word in enumerate(words) if known or found else ():
            findings = merged([*self._known(known, word), *found.get(number, ())])
            if not findings:
                continue
            names = secrets[str(number)] = list[str | None]()
            pieces = []
            end = 0
            for one in findings:
                names += [None] * word[end : one.start].count(MASK)
                value = word[one.start : one.end]
                name = self._name(one.name, value, number)
                self._named.setdefault(name, value)
                names.append(name)
                pieces += [word[end : one.start], MASK]
                end = one.end
            names += [None] * word[end:].count(MASK)
            masked[number] = "".join([*pieces, word[end:]])
        return Arguments(tuple(masked), secrets)

    def _known(self, texts: Iterable[str], word: str) -> Iterator[Finding]:
        for text in texts:
            if text in word:
                name = next((n for n, value in self._named.items() if value == text), None)
                for match in re.finditer(re.escape(text), word):
                    yield Finding(*match.span(), name)

    def _name(self, name: str | None, value: str, number: int) -> str:
        """How a repeat asks for this value: by a name that no other value has."""
        base = re.sub(r"\W", "_", name).upper() if name else f"ARGUMENT_{number}"
        if self._named.get(name or "") == value:
            return name or ""
        found, count = base, 1
        while self._named.get(found, value) != value:
            count += 1
            found = f"{base}_{count}"
        return found

    def url(self, url: str) -> str:
        return mask_url(self.text(url))

    def stream(self) -> Stream:
        """A masker for output that arrives in pieces."""
        return Stream(self._secrets)


def _spellings(value: str) -> Iterable[bytes]:
    """What to search for in text: the value, and the passwords in it, in every encoding."""
    whole = {value, value.strip()}
    for part in secret_parts(value):
        whole |= {part, unquote(part)}
    for text in whole:
        if len(text.encode(errors="surrogateescape")) >= SHORTEST:
            yield from encodings(text)
