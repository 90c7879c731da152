"""Find secrets in a text by their form and context, without knowing their values.

A finding has the name of its option, variable or header, if any: a repeat asks for the value by it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from clew.redaction.access_tokens import find_tokens, has_token
from clew.redaction.masking import MASK
from clew.redaction.names import (
    HEADERS,
    is_secret_option,
    is_secret_parameter,
    is_secret_variable,
)


class Finding(NamedTuple):
    """A secret in a text."""

    start: int
    end: int
    name: str | None = None


_HINTS = (
    *("pass", "pwd", "token", "secret", "key", "auth", "cookie", "cred", "connection", "webhook"),
    *("_dsn", "_jwt", "_pat"),
)
"""One of these is in every name of a secret, and none in the words of most commands."""

# Expressions are compiled when they are first needed: few commands need any of them.
_VALUE = r"""("[^"]*"|'[^']*'|[^\s'"]+)"""
_WHOLE_OPTION = r"(?s)--?([A-Za-z][\w-]*)=(.*)"
_OPTION = rf"(?<![\w-])--?([A-Za-z][\w-]*)(?:=|[ \t]+)(?={_VALUE})"
_WHOLE_ASSIGNMENT = r"(?s)([A-Za-z_]\w*)=(.*)"
_ASSIGNMENT = rf"(?<![\w$.-])([A-Z][A-Z0-9_]*)={_VALUE}"
_PAIR = (
    r"(?i)(?:(?<![\w-])|(?<=-D))"
    r"(password|passwd|pwd|passphrase|account ?key|shared ?access ?key(?! ?name)|api[._-]?key"
    r"|client[._]secret|secret[._]key|secret[._]access[._]key|(?:access|auth|refresh)[._]token)"
    r"""[ \t]*=[ \t]*("[^"]*"|'[^']*'|[^\s;,&'"]+)"""
)
_HEADER = (
    rf"(?i)(?<![\w-])({'|'.join(HEADERS)})[ \t]*:[ \t]*"
    r"""(?:(?:basic|bearer|token)[ \t]+)?([^'"\r\n]+)"""
)
_MEMBER = r"""(["'])([\w-]+)\1[ \t]*:[ \t]*(?=(["'])((?:\\.|(?!\3).)+)\3)"""
_URL = r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+"
_USERINFO = r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#@]*(?:@[^/?#@]*)*)@"
_PARAMETER = r"(?<=[?&;#])([^?&;#=]+)=([^&;#]*)"
_AUTHORITY = r"://[^/?#\s:@]*:([^/?#\s@]+)@"

_FLAG = r"(?s)-[A-Za-z]|--[a-z][a-z0-9-]*(?:=.*)?"
_SCRIPT_FOLLOWS = r"-[a-z]*c"
"""`sh -c`, `bash -ec`, `python -c`."""
_ATTACHED = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow"), ("-p",)),
    **dict.fromkeys(("mariadb", "mariadb-dump", "mariadb-admin"), ("-p",)),
}
"""Programs with a short option whose secret value is part of the same word."""
_FOLLOWING = {"sshpass": ("-p",), "curl": ("-u", "--user"), "redis-cli": ("-a",)}
"""Programs with a short option whose secret value is the next word."""


def find_passwords(text: str) -> Iterator[str]:
    """The passwords in the addresses of a text (`scheme://user:password@host`)."""
    if "://" in text:
        for match in re.finditer(_AUTHORITY, text):
            yield match[1]


def find_secret_parts(value: str) -> Iterator[str]:
    """The secret parts of a variable's value, whatever the variable's name. A user name in a URL is
    not secret."""
    yield from find_passwords(value)
    for found in find_in_text(value):
        if found.name:
            yield value[found.start : found.end]


def find_in_words(
    words: Sequence[str], patterns: tuple[str, ...] = ()
) -> Iterator[tuple[int, list[Finding]]]:
    """The secrets in the words of a command, by the number of the word. `patterns`: the user's."""
    program = words[0].rpartition("/")[2] if words else ""
    text = " ".join(words)
    suspect = "://" in text or _is_suspect(text) or has_token(text)
    if not (suspect or patterns or program in _ATTACHED or program in _FOLLOWING):
        return
    option: str | None = None
    script = False
    for number, word in enumerate(words):
        if option and not re.fullmatch(_FLAG, word) and _is_literal(word):
            found = [Finding(0, len(word), option)]
        else:
            found = [*_find_attached(program, word), *find_in_text(word, patterns, script=script)]
        script = bool(re.fullmatch(_SCRIPT_FOLLOWS, word))
        option = _next_word_option(program, word, patterns)
        if found:
            yield number, found


def find_in_text(
    text: str, patterns: tuple[str, ...] = (), *, script: bool = True
) -> Iterator[Finding]:
    """The secrets in a word, a script or a line of a log."""
    if "://" in text:
        for url in re.finditer(_URL, text):
            for found in find_in_url(url[0]):
                start, end = url.start() + found.start, url.start() + found.end
                yield Finding(start, end, found.name)
    for start, end in find_tokens(text):
        yield Finding(start, end, "token")
    if patterns or _is_suspect(text):
        yield from _find_options(text, patterns, script)
        yield from _find_assignments(text, patterns, script)
        for match in re.finditer(_HEADER, text):
            if _is_literal(match[2]):
                yield _value_finding(match, match[1])
        for match in re.finditer(_MEMBER, text):
            if is_secret_option(match[2], patterns) and _is_literal(match[4]):
                yield Finding(*match.span(4), match[2])
        yield from _find_pairs(text)


def find_in_url(url: str) -> Iterator[Finding]:
    """The credentials in a URL: user and password, secret parameters, access tokens."""
    match = re.match(_USERINFO, url) if "@" in url else None
    if match and match[1] not in ("", MASK) and (":" in match[1] or url[:4].lower() == "http"):
        yield Finding(*match.span(1))  # with HTTP, a user name alone may be a token
    for match in re.finditer(_PARAMETER, url) if "=" in url else ():
        if match[2] not in ("", MASK) and is_secret_parameter(unquote(match[1])):
            yield Finding(*match.span(2), unquote(match[1]))
    for start, end in find_tokens(url):
        yield Finding(start, end, "token")


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Sort the findings and join those that overlap; a joined one keeps the name of a finding that
    covers it."""
    done: list[Finding] = []
    for found in sorted(findings, key=lambda one: one[:2]):
        if done and found.start < done[-1].end:
            last = done.pop()
            whole = last.start, max(last.end, found.end)
            name = next((one.name for one in (last, found) if one.name and one[:2] == whole), None)
            done.append(Finding(*whole, name))
        else:
            done.append(found)
    return done


def mask_text(text: str) -> str:
    """Mask the secrets in a log or message, and the pairs in each of its lines."""
    lines = _mask_findings(text, find_in_text(text)).split("\n")
    return "\n".join(_mask_findings(line, _find_pairs(line)) for line in lines)


def mask_url(url: str) -> str:
    """Mask the user and password of a URL, its secret parameters and access tokens."""
    return _mask_findings(url, find_in_url(url))


def _mask_findings(text: str, findings: Iterable[Finding]) -> str:
    for found in reversed(merge_findings(findings)):
        text = text[: found.start] + MASK + text[found.end :]
    return text


def _is_suspect(text: str) -> bool:
    lower = text.lower()
    return any(map(lower.__contains__, _HINTS))


def _find_options(text: str, patterns: tuple[str, ...], script: bool) -> Iterator[Finding]:
    for match in _find_matches(_WHOLE_OPTION, _OPTION, text, script):
        is_flag = text[match.end(1)] != "=" and re.fullmatch(_FLAG, match[2])
        if is_secret_option(match[1], patterns) and _is_literal(match[2]) and not is_flag:
            yield _value_finding(match, match[1])


def _find_assignments(text: str, patterns: tuple[str, ...], script: bool) -> Iterator[Finding]:
    for match in _find_matches(_WHOLE_ASSIGNMENT, _ASSIGNMENT, text, script):
        if match[1].isupper() and is_secret_variable(match[1], patterns) and _is_literal(match[2]):
            yield _value_finding(match, match[1])


def _find_matches(whole: str, part: str, text: str, script: bool) -> Iterable[re.Match[str]]:
    """In a word `NAME=VALUE`, the value is the rest of the word; in a script, a space ends it."""
    match = None if script else re.fullmatch(whole, text)
    return (match,) if match else re.finditer(part, text)


def _find_pairs(text: str) -> Iterator[Finding]:
    """Passwords in connection strings. Text with brackets is source code, with pairs of its own."""
    if "=" in text and "(" not in text:
        for match in re.finditer(_PAIR, text):
            if _is_literal(match[2]):
                yield _value_finding(match, match[1])


def _value_finding(match: re.Match[str], name: str) -> Finding:
    """The value without its quotes."""
    start, end = match.span(2)
    if match[2][:1] in "'\"" and len(match[2]) > 1 and match[2][-1] == match[2][0]:
        start, end = start + 1, end - 1
    return Finding(start, end, name)


def _is_literal(value: str) -> bool:
    """Whether it is a value, and not a reference to a variable or `-` for stdin."""
    plain = value.strip("'\"")
    return plain not in ("", "-", MASK) and not plain.startswith("$")


def _next_word_option(program: str, word: str, patterns: tuple[str, ...]) -> str | None:
    """The name of the option whose secret value is the next word."""
    if word in _FOLLOWING.get(program, ()):
        return "password"
    if not word.startswith("-") or "=" in word:
        return None
    name = word.removeprefix("-").removeprefix("-")
    return name if len(name) > 1 and is_secret_option(name, patterns) else None


def _find_attached(program: str, word: str) -> Iterator[Finding]:
    for option in _ATTACHED.get(program, ()):
        if word.startswith(option) and len(word) > len(option):
            yield Finding(len(option), len(word), "password")
