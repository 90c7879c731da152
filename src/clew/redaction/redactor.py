"""Mask secret values in the recorded environment, arguments and output.

A variable is secret if its name matches our patterns or the user's, or if its value is an access
token, a private key or a URL with a password. The value of an option such as `--password` is secret
too. `docs/reference/redaction.md` documents the rules.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar
from urllib.parse import quote, quote_plus, unquote

from blake3 import blake3

from clew.redaction.masking import MASK, Stream, mask
from clew.redaction.names import is_secret_variable
from clew.redaction.text_scan import (
    Finding,
    find_in_words,
    find_passwords,
    find_secret_parts,
    mask_url,
    merge_findings,
)
from clew.settings import remove_own_variables

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
    """Masks the secrets of one environment wherever they would be recorded."""

    def __init__(
        self, environ: Mapping[str, str], patterns: Iterable[str] = (), *, key: bytes = b""
    ) -> None:
        """`key`: known only to the project; with it, two masked values can be compared later."""
        self._patterns = tuple(patterns)
        self._key = blake3(key).digest() if key else None
        self.names: frozenset[str] = frozenset()
        """The variables whose values are masked."""
        self._decisions: dict[tuple[str, str], bool] = {}  # most processes have the same variables
        self._named: dict[str, str] = {}
        self._values: set[str] = set()
        self._secrets: list[bytes] = []
        self._texts: list[str] = []
        self._masked: dict[tuple[str, str], str] = {}
        self._found_in_words: dict[tuple[str, ...], dict[int, list[Finding]]] = {}
        self.learn(environ)

    def learn(self, environ: Mapping[str, str]) -> None:
        """From now on mask also the secrets of this environment, such as a child process's own."""
        self.add_secrets({n: v for n, v in environ.items() if self._is_secret(n, v)})

    def add_secrets(self, secrets: Mapping[str, str]) -> None:
        """From now on mask these values, whatever their names: the user passed them as secrets.
        Streams that were made before do not mask them."""
        secrets = {name: value for name, value in secrets.items() if value and value != MASK}
        self.names |= secrets.keys()
        for name, value in secrets.items():
            self._named.setdefault(name, value)
        self.add_values(secrets.values())

    def add_values(self, values: Iterable[str]) -> None:
        """As `add_secrets`, for values without names."""
        fresh = set(values) - self._values
        if not fresh:
            return
        self._values |= fresh
        found = {text for value in fresh for text in _searched_texts(value)}
        self._secrets = sorted(found.union(self._secrets), key=lambda text: (-len(text), text))
        self._texts = [text.decode(errors="surrogateescape") for text in self._secrets]
        self._masked.clear()

    def _is_secret(self, name: str, value: str) -> bool:
        if not value or value == MASK:
            return False
        decision = self._decisions.get((name, value))
        if decision is None:
            decision = is_secret_variable(name, self._patterns) or any(find_secret_parts(value))
            self._decisions[name, value] = decision
        return decision

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """The variables, with a mask in place of each secret value, and without Clew's own."""
        return {n: self._variable(n, v) for n, v in remove_own_variables(variables).items()}

    def _variable(self, name: str, value: str) -> str:
        masked = self._masked.get((name, value))
        if masked is None:
            hide = name in self.names or self._is_secret(name, value)
            masked = self._masked[name, value] = MASK if hide else self.text(value)
        return masked

    def seals(
        self, variables: Mapping[str, str], masked: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        """A keyed hash of each masked variable. The holder of the key can compare two values by it;
        without the key it reveals nothing. `masked` is the result of `environment`, if known."""
        if self._key is None:
            return {}
        if masked is None:
            masked = self.environment(variables)
        return {
            name: blake3(f"{name}\0{variables[name]}".encode(), key=self._key).hexdigest(length=16)
            for name, value in masked.items()
            if MASK in value
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
        known = self._found_in_words.get(tuple(words))
        if known is not None:  # each command is learnt before any is recorded
            return known
        found = self._found_in_words[tuple(words)] = dict(find_in_words(words, self._patterns))
        for number, findings in found.items():
            word = words[number]
            self.add_values(find_passwords(word))
            for one in findings:
                if one.name:
                    value = word[one.start : one.end]
                    self.add_secrets({self._unique_name(one.name, value, number): value})
        return found

    def arguments(self, words: Sequence[str]) -> Arguments:
        """The words of a command with every secret in them masked."""
        found = self.learn_command(words)
        masked = list(words)
        secrets: dict[str, list[str | None]] = {}
        joined = " ".join(words)
        known = [text for text in self._texts if text in joined]
        for number, word in enumerate(words) if known or found else ():
            findings = merge_findings([*self._find_known(known, word), *found.get(number, ())])
            if not findings:
                continue
            names = secrets[str(number)] = list[str | None]()
            pieces = []
            end = 0
            for one in findings:
                names += [None] * word[end : one.start].count(MASK)
                value = word[one.start : one.end]
                name = self._unique_name(one.name, value, number)
                self._named.setdefault(name, value)
                names.append(name)
                pieces += [word[end : one.start], MASK]
                end = one.end
            names += [None] * word[end:].count(MASK)
            masked[number] = "".join([*pieces, word[end:]])
        return Arguments(tuple(masked), secrets)

    def _find_known(self, texts: Iterable[str], word: str) -> Iterator[Finding]:
        for text in texts:
            if text in word:
                name = next((n for n, value in self._named.items() if value == text), None)
                for match in re.finditer(re.escape(text), word):
                    yield Finding(*match.span(), name)

    def _unique_name(self, name: str | None, value: str, number: int) -> str:
        """The name by which a repeat asks for this value; no other value has it."""
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

    def finds_secret(self, pieces: Iterable[bytes]) -> bool:
        """Whether a secret value is in data that arrives in pieces."""
        held = b""
        overlap = len(self._secrets[0]) - 1 if self._secrets else 0
        for piece in pieces:
            held += piece
            if any(secret in held for secret in self._secrets):
                return True
            held = held[len(held) - min(overlap, len(held)) :]
        return False

    def stream(self) -> Stream:
        """A masker for output that arrives in pieces."""
        return Stream(self._secrets)


def _searched_texts(value: str) -> Iterable[bytes]:
    """The texts to search for: the value, and the passwords in it, in every encoding."""
    whole = {value, value.strip()}
    for part in find_secret_parts(value):
        whole |= {part, unquote(part)}
    for text in whole:
        if len(text.encode(errors="surrogateescape")) >= SHORTEST:
            yield from encode_variants(text)


_URLSAFE = bytes.maketrans(b"+/", b"-_")


def encode_variants(value: str) -> Iterator[bytes]:
    """The value itself, and in base64, hexadecimal, percent-encoding and JSON."""
    import json  # only where there are secrets

    raw = value.encode(errors="surrogateescape")
    yield raw
    yield raw.replace(b"\n", b"\r\n")  # as a terminal prints it
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted.encode()
        yield _lower_percent(quoted).encode()
    for ascii_only in (True, False):
        yield json.dumps(value, ensure_ascii=ascii_only)[1:-1].encode(errors="surrogateescape")
    yield from _base64(raw)


def _base64(raw: bytes) -> Iterator[bytes]:
    """The characters that depend on the value alone, wherever it stands in what was encoded.

    Three bytes become four characters, so there are three alignments. A character that also holds
    bits of the byte before or after the value is left out: it differs with its surroundings.
    """
    for before in range(3):
        first, end = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        standard = base64.b64encode(bytes(before) + raw)[first:end]
        yield standard
        yield standard.translate(_URLSAFE)


def _lower_percent(quoted: str) -> str:
    """`%2F` as `%2f`."""
    head, *rest = quoted.split("%")
    return "%".join([head, *(part[:2].lower() + part[2:] for part in rest)])
