"""What the two processes of a pair saw differently: words, variables, files, listings, streams.

Only answers to the same question count. A file that only one of them opened is something it did,
not something it saw; but one that it looked for and did not find, where the other found it, is.
Each difference tells where it came from: another process of the run, or from outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from clew.prov.locators import path_of
from clew.prov.package_urls import parse
from clew.prov.queries.execution_record import Activity, Version
from clew.prov.queries.formats import place
from clew.replay.compare.execution_index import Side
from clew.replay.compare.execution_pair import Views
from clew.replay.compare.output_comparison import ending
from clew.replay.compare.process_alignment import Pair

_DEVICES = (b"/proc/", b"/sys/", b"/dev/")
_LONGEST = 80


@dataclass(frozen=True)
class Sight:
    """One thing that was seen differently."""

    cause: str
    """argument, variable, input, library, listing or order."""
    what: str
    """Which one: a path, a variable's name, a package."""
    detail: str
    source: Pair | None = None
    """The process of the run that it came from; None: from outside."""
    at: int = 0
    """When, in `b`: nothing that was done before can come of it."""
    sure: bool = True
    """False: it may have differed; nobody recorded the bytes, or a rule knows the difference."""
    names: tuple[str, ...] = ()
    """The files it is about."""


def sights(views: Views, pair: Pair) -> list[Sight]:
    """All that differs in what the two saw."""
    return [
        *_arguments(views, pair),
        *_files(views, pair),
        *_presences(views, pair),
        *_answers(views, pair),
        *_variables(views, pair),
        *_statuses(views, pair),
        *_flows(views, pair),
    ]


# -- what it was started with


def _arguments(views: Views, pair: Pair) -> Iterator[Sight]:
    if pair.b.exe is None:  # it has its parent's words
        return
    if pair.a.command != pair.b.command:
        words = _words(pair.a.command, pair.b.command)
        yield Sight("argument", "", words, views.parent(pair), pair.b.started)
    elif pair.a.exe != pair.b.exe:
        detail = f"runs {pair.a.exe} → {pair.b.exe}"
        yield Sight("argument", "", detail, views.parent(pair), pair.b.started)
    folders = [
        side.name(f"file://{process.cwd}/.")
        for side, process in ((views.a, pair.a), (views.b, pair.b))
    ]
    if folders[0] != folders[1]:
        detail = f"working folder {pair.a.cwd} → {pair.b.cwd}"
        yield Sight("argument", "", detail, views.parent(pair), pair.b.started)


def _words(a: list[str], b: list[str]) -> str:
    if len(a) == len(b):
        changed = [n for n in range(len(a)) if a[n] != b[n]]
        return ", ".join(f"argument {n}: {_short(a[n])} → {_short(b[n])}" for n in changed[:3])
    return f"{len(a)} words → {len(b)} words: {_short(' '.join(b))}"


def _variables(views: Views, pair: Pair) -> Iterator[Sight]:
    if pair.b.exe is None:
        return
    a, b = views.a.environment(pair.a), views.b.environment(pair.b)
    above = views.parent(pair)
    inherited = above is None or (
        views.a.environment(above.a),
        views.b.environment(above.b),
    )
    for name in sorted(a.keys() | b.keys()):
        if a.get(name) == b.get(name):
            continue
        passed_on = inherited is True or all(
            upper.get(name) == own.get(name) for upper, own in zip(inherited, (a, b), strict=True)
        )
        detail = f"{name}: {_value(a.get(name))} → {_value(b.get(name))}"
        yield Sight("variable", name, detail, None if passed_on else above, pair.b.started)


# -- what it read


def _files(views: Views, pair: Pair) -> Iterator[Sight]:
    a, b = _read_by(views.a, pair.a), _read_by(views.b, pair.b)
    packages: dict[str, list[tuple[Version, Version]]] = {}
    for name in sorted(a.keys() & b.keys()):
        for (one, _), (other, at) in zip(a[name], b[name], strict=False):
            if views.same(one, other):
                continue
            package = one.package or other.package
            if package and one.found and other.found:
                packages.setdefault(_package(package)[0], []).append((one, other))
            else:
                yield replace(_file(views, pair, name, one, other), at=at)
            break
    for package, files in packages.items():
        yield _library(views, package, files)


def _read_by(side: Side, process: Activity) -> dict[str, list[tuple[Version, int]]]:
    """By name, what it met there, each version once, and when."""
    found: dict[str, dict[int, tuple[Version, int]]] = {}
    for edge, version in side.used[process.key]:
        path = path_of(version.locator)
        if path is None or not path.startswith(_DEVICES):
            line = found.setdefault(side.name(version.locator), {})
            line.setdefault(version.key, (version, edge.at))
    return {name: list(line.values()) for name, line in found.items()}


def _file(views: Views, pair: Pair, name: str, a: Version, b: Version) -> Sight:
    path = place(b.locator)["path"]
    if a.found and b.found:
        return Sight("input", path, f"{path} differs", names=(name,))
    maker = views.maker(a, b)
    if maker is None or (views.raced(pair, maker) and views.left_alike(name)):
        return Sight("order", path, f"{path} was read at another stage of its making")
    known = None not in (views.a.digest(a), views.b.digest(b))
    sure = known and not views.contents.equivalent(a, b)
    return Sight("input", path, f"{path} differs", maker, sure=sure, names=(name,))


def _package(text: str) -> tuple[str, str]:
    """A package's name, and its version."""
    try:
        found = parse(text)
    except ValueError:
        return text, ""
    return f"{found.manager}/{found.name}", found.version


def _library(views: Views, package: str, files: list[tuple[Version, Version]]) -> Sight:
    versions = [
        sorted({_package(both[n].package or "")[1] for both in files} - {""}) for n in (0, 1)
    ]
    words = [", ".join(found) or "another" for found in versions]
    name = package.split("/", 1)[-1]
    detail = f"{name} {words[0]} → {words[1]}"
    if words[0] == words[1]:
        changed = place(files[0][1].locator)["path"]
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        detail = f"{name} {words[0]}, but {changed}{more} differs"
    return Sight("library", package, detail, names=tuple(views.b.name(b.locator) for _, b in files))


# -- what it looked for


def _presences(views: Views, pair: Pair) -> Iterator[Sight]:
    a, b = _presence(views.a, pair.a), _presence(views.b, pair.b)
    for name in sorted(a.keys() & b.keys()):
        there, at = a[name][1], b[name][0]
        if there == b[name][1]:
            continue
        side, process = (views.a, pair.a) if there else (views.b, pair.b)
        if _only_written(side, process, name):
            continue
        shown = place(f"file://{name}")["path"]
        words = "there, then absent" if there else "absent, then there"
        detail = f"{shown} was {words}"
        maker = views.maker_at(side, name)
        if maker is None:
            yield Sight("input", shown, detail, at=at, names=(name,))
        elif views.both_made(name):
            yield Sight("order", shown, detail, at=at)
        elif maker != pair:
            yield Sight("input", shown, detail, maker, at)


def _presence(side: Side, process: Activity) -> dict[str, tuple[int, bool]]:
    """When it first asked for each path, and whether it was there."""
    asked = [
        (look.at, look.locator, look.kind != "absent")
        for look in side.looks[process.key]
        if look.kind != "absent" or look.answer == "ENOENT"
    ]
    asked += [(edge.at, version.locator, True) for edge, version in side.used[process.key]]
    found: dict[str, tuple[int, bool]] = {}
    for at, locator, there in sorted(asked):
        found.setdefault(side.name(locator), (at, there))
    return found


def _only_written(side: Side, process: Activity, name: str) -> bool:
    """That a file was there which it replaced without reading it is no news."""
    read = any(side.name(version.locator) == name for _, version in side.used[process.key])
    written = any(side.name(version.locator) == name for _, version in side.made[process.key])
    return written and not read


def _answers(views: Views, pair: Pair) -> Iterator[Sight]:
    """Listings, and where links led."""
    a, b = _answered(views.a, pair.a), _answered(views.b, pair.b)
    for kind, name in sorted(a.keys() & b.keys()):
        (one, _), (other, at) = a[kind, name], b[kind, name]
        if one == other:
            continue
        shown = place(f"file://{name}")["path"]
        if kind == "listing":
            for sight in _listing(views, pair, name, (one, other)):
                yield replace(sight, at=at)
        else:
            yield Sight("input", shown, f"the link {shown} led to {one}, then to {other}", at=at)


def _answered(side: Side, process: Activity) -> dict[tuple[str, str], tuple[str, int]]:
    """The first answer to each question about a folder or a link, and when."""
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for look in side.looks[process.key]:
        if look.kind in ("listing", "link") and look.answer:
            found.setdefault((look.kind, side.name(look.locator)), (look.answer, look.at))
    return found


def _listing(views: Views, pair: Pair, folder: str, answers: tuple[str, str]) -> Iterator[Sight]:
    shown = place(f"file://{folder}")["path"]
    detail = f"{shown} was listed with other names"
    both = views.read(answers[0]), views.read(answers[1])
    if both[0] is None or both[1] is None:
        yield Sight("listing", shown, detail, names=(folder,))
        return
    before, after = set(both[0].split(b"\0")), set(both[1].split(b"\0"))
    signs = [(f"+{n.decode(errors='replace')}", n) for n in sorted(after - before)]
    signs += [(f"-{n.decode(errors='replace')}", n) for n in sorted(before - after)]
    detail += ": " + ", ".join(sign for sign, _ in signs[:5]) + (" …" if len(signs) > 5 else "")
    sources: set[Pair | None] = set()
    for sign, _ in signs:
        name = f"{folder.rstrip('/')}/{sign[1:]}"
        if views.both_made(name):
            yield Sight("order", shown, detail)
            return
        sources.add(views.maker_at(views.b if sign[0] == "+" else views.a, name))
    others = sources - {None, pair}
    if not others:
        yield Sight("listing", shown, detail, names=(folder,))
    for source in others:
        yield Sight("listing", shown, detail, source)


# -- what others told it


def _statuses(views: Views, pair: Pair) -> Iterator[Sight]:
    for child in views.b.children[pair.b.key]:
        known = views.alignment.by_b.get(child.key)
        if known is not None and ending(known.a) != ending(known.b):
            who = views.b.id(child)
            detail = f"{who} ended with {ending(known.a)} → {ending(known.b)}"
            yield Sight("input", who, detail, known, views.b.end(child))


def _flows(views: Views, pair: Pair) -> Iterator[Sight]:
    for source in views.b.informants[pair.b.key]:
        known = views.alignment.by_b.get(source)
        if known is not None and known != pair:
            who = views.b.id(known.b)
            detail = f"what {who} passed on to it"
            yield Sight("input", who, detail, known, known.b.started, sure=False)


def _value(text: str | None) -> str:
    return "not set" if text is None else _short(text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
