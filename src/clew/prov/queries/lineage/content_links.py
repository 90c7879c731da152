"""Link files that no recorded execution made to earlier versions with the same bytes.

A file that was moved, copied or unpacked outside Clew is found at a path that no execution wrote.
If its bytes were recorded before, or are in a recorded archive, they most likely came from there.
Such a link is an inference, not an observation: it is computed when it is needed, never stored, and
has an edge kind of its own.
"""

import stat
from collections.abc import Collection, Iterable, Iterator
from functools import cache, cached_property
from typing import Literal, NamedTuple

from clew.documents.ids import Digest, Locator
from clew.prov.graph import Graph
from clew.prov.queries.formats import STREAM
from clew.prov.queries.lineage.lineage_sql import FOREVER, LineageQueries, Version
from clew.prov.queries.show import classify_locator
from clew.prov.row_keys import digest_bytes, digest_text

SAME_CONTENT = "same_content"
"""The kind of edge, from the earlier version to the one that was found."""
TINY = 64
"""Files with fewer bytes may be equal by chance."""
COMMON = 5
"""Content that was seen in more places than this may have come from any of them."""
MOST = 10
"""Candidates to list for one file."""
LARGEST_ARCHIVE = 256 << 20
"""Archives with more bytes are not searched."""
_ARCHIVE_BYTES, _ARCHIVES_SEARCHED = 1 << 30, 50
"""The latest archives are searched: so many, of so many bytes together."""
_FEW = 200
"""Recorded versions of one content that are read and ranked; of more, the nearest in time."""
_SCANNED = 20_000
"""Recorded versions of one content that are looked at: a bound on the time this takes."""

_COUNTS = "SELECT digest, count(*) FROM content WHERE digest IN ({}) GROUP BY digest"
_COLUMNS = """
SELECT c.digest, v.id, v.execution, v.location, l.locator, v.maker, v.at, c.size, c.mode,
       c.source IS NOT NULL, x.made_elsewhere, coalesce(s.mode, '') = 'repetition'
"""
# The plus keeps SQLite from starting with all executions of the project.
_JOINS = """
JOIN location l ON l.id = v.location JOIN execution x ON x.id = v.execution
LEFT JOIN started s ON s.id = x.id WHERE +x.project = ? AND c.size > 0
"""
_ALL = (
    f"{_COLUMNS} FROM content c JOIN version v ON v.id = c.version {_JOINS} AND c.digest IN ({{}})"
)
# Of content with many versions, one per place: the last made before a time, or the first found.
_SOME = f"""
{_COLUMNS} FROM (
  SELECT v.*, row_number() OVER (PARTITION BY v.location ORDER BY v.at {{order}}) AS nth
  FROM (SELECT version FROM content WHERE digest = ? LIMIT {_SCANNED}) AS held
  JOIN version v ON v.id = held.version WHERE v.at < ? AND {{which}}
) AS v JOIN content c ON c.version = v.id {_JOINS} AND v.nth = 1
ORDER BY v.at {{order}} LIMIT {_FEW}
"""  # noqa: S608
_NAMED = ("image://", "configmap://", "secret://", "pod://")
"""What is made by its name: an image by its content, the others by requests to a cluster."""
_ENDINGS = (".zip", ".tar", ".tgz", "r.gz", ".bz2", ".tbz", "r.xz", ".txz")
# In the words of the index `location_archive`.
_ARCHIVE_PLACES = f"""
SELECT id FROM location WHERE project = ? AND substr(locator, length(locator) - 3) IN {_ENDINGS}
"""  # noqa: S608
# Found and made versions have an index each.
_ARCHIVES = f"""
{_COLUMNS} FROM location l JOIN version v ON v.location = l.id AND v.maker {{test}} v.execution
JOIN content c ON c.version = v.id JOIN execution x ON x.id = v.execution
LEFT JOIN started s ON s.id = x.id
WHERE l.id IN ({{{{}}}}) AND c.stored = 1 AND c.package IS NULL
AND c.size BETWEEN 1 AND {LARGEST_ARCHIVE}
ORDER BY v.at DESC LIMIT {_FEW}
"""
_MADE_BEFORE = _SOME.format(order="DESC", which="v.maker <> v.execution")
_FOUND_FIRST = _SOME.format(order="ASC", which="v.maker = v.execution")


class Candidate(NamedTuple):
    """A recorded version of some content."""

    digest: bytes
    key: int
    execution: int
    location: int
    locator: Locator
    maker: int
    at: int
    size: int
    mode: int
    has_source: bool
    made_elsewhere: int
    repetition: bool
    member: str | None = None
    """The name of the file in the archive that this version is."""

    @property
    def made(self) -> bool:
        """Whether an execution made it. Kept output streams have no process as their maker."""
        if self.locator.startswith(STREAM):
            return not self.locator.endswith("/stdin")
        return self.maker != self.execution


class Link(NamedTuple):
    """The earlier versions that a found one may be a copy of, the likeliest first."""

    candidates: list[Candidate]
    weak: bool
    """The content is too small or too common to tell where it came from."""

    @property
    def best(self) -> int:
        return self.candidates[0].key

    @property
    def strength(self) -> Literal["strong", "weak"]:
        return "weak" if self.weak else "strong"

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of the edge."""
        member = self.candidates[0].member
        return {"strength": self.strength} | ({} if member is None else {"member": member})


def rank_candidates(
    found: Iterable[Candidate], *, at: int, locator: Locator, execution: int | None
) -> Link | None:
    """Rank the versions that a file, found at `locator` at the time `at`, may be a copy of.

    Versions recorded here come before claims of imported records, made ones before found ones, the
    same file name before others. Of made versions the latest comes first, as in `origins`; of found
    ones those with a known source, then the earliest.
    """
    places: dict[int, Candidate] = {}
    ordered = sorted((c for c in found if c.at < at), key=lambda c: _sort_key(c, locator))
    for candidate in ordered:
        # within one execution the order is known: it found the file before it made an equal one
        elsewhere = candidate.locator != locator and candidate.execution != execution
        if elsewhere and not stat.S_ISLNK(candidate.mode):
            places.setdefault(candidate.location, candidate)
    if not places:
        return None
    size = ordered[0].size
    return Link(list(places.values())[:MOST], weak=size < TINY or len(places) > COMMON)


def _sort_key(candidate: Candidate, locator: Locator) -> tuple[object, ...]:
    return (
        candidate.made_elsewhere != 0,
        not candidate.made,
        _name(candidate.locator) != _name(locator),
        candidate.repetition,
        not candidate.has_source,
        -candidate.at if candidate.made else candidate.at,
        candidate.key,
    )


def _name(locator: Locator) -> str:
    return locator.rpartition("/")[2]


class ContentLinks:
    """Finds links in a graph."""

    def __init__(self, graph: Graph, steps: LineageQueries) -> None:
        self._connection = graph.connection
        self._project = graph.project
        self._steps = steps
        self._list_members = cache(graph.list_members)

    def before(self, versions: Iterable[Version]) -> dict[int, Link]:
        """Find the links from earlier versions to these found ones. Each must be its own origin."""
        subjects = [version for version in versions if _needs_link(version)]
        latest: dict[bytes, int] = {}
        for subject in subjects:
            assert subject.digest is not None
            latest[subject.digest] = max(subject.at, latest.get(subject.digest, 0))
        candidates = self._load(latest)
        links: dict[int, Link] = {}
        for subject in subjects:
            assert subject.digest is not None
            link = self._rank(
                candidates.get(subject.digest, ()),
                subject.digest,
                at=subject.at,
                locator=subject.locator,
                execution=subject.execution,
            )
            if link is not None:
                links[subject.key] = link
        return links

    def before_now(self, locator: Locator, digest: bytes) -> Link | None:
        """Where a file may come from that is there now and that no execution accessed."""
        found = self._load({digest: FOREVER}).get(digest, ())
        return self._rank(found, digest, at=FOREVER, locator=locator, execution=None)

    def _rank(
        self,
        found: Iterable[Candidate],
        digest: bytes,
        *,
        at: int,
        locator: Locator,
        execution: int | None,
    ) -> Link | None:
        """The link to `found`, the versions with this digest; else to archives that contain it."""
        return rank_candidates(
            found, at=at, locator=locator, execution=execution
        ) or rank_candidates(
            self.find_in_archives(digest), at=at, locator=locator, execution=execution
        )

    def after(self, versions: Collection[Version]) -> list[tuple[int, Version, Link]]:
        """The found versions whose likeliest origin is one of these: (origin, version, link)."""
        earliest: dict[bytes, int] = {}
        for version in versions:
            if version.digest is not None:
                earliest[version.digest] = min(version.at, earliest.get(version.digest, version.at))
            if version.locator.endswith(_ENDINGS) and (version.size or 0) <= LARGEST_ARCHIVE:
                for member in self._list_members(digest_text(version.digest) or ""):
                    earliest[member] = min(version.at, earliest.get(member, version.at))
        known = {version.key for version in versions}
        later = {
            candidate.key
            for digest, candidates in self._load(dict.fromkeys(earliest, FOREVER)).items()
            for candidate in candidates
            if not candidate.made and candidate.at > earliest[digest]
        }
        origins = self._steps.origins(later - known)
        found = self._steps.versions(key for key, origin in origins.items() if key == origin)
        return [
            (link.best, found[key], link)
            for key, link in self.before(found.values()).items()
            if link.best in known
        ]

    def find_in_archives(self, digest: bytes) -> Iterator[Candidate]:
        """The recorded archives that contain a file with this content."""
        for archive in self._archives:
            member = self._list_members(digest_text(archive.digest) or "").get(digest)
            if member is not None:
                yield archive._replace(member=member.name, size=member.size)

    @cached_property
    def _archives(self) -> list[Candidate]:
        """The recorded versions of archives, the latest first."""
        places = [row[0] for row in self._connection.rows(_ARCHIVE_PLACES, (self._project,))]
        rows = [
            Candidate(*row)
            for is_maker in ("=", "<>")
            for row in self._connection.rows_in(_ARCHIVES.format(test=is_maker), places)
        ]
        rows.sort(key=lambda archive: -archive.at)
        sizes: dict[bytes, int] = {}
        for archive in rows:
            room = _ARCHIVE_BYTES - sum(sizes.values())
            if archive.size <= room and len(sizes) < _ARCHIVES_SEARCHED:
                sizes[archive.digest] = archive.size
        return [archive for archive in rows if archive.digest in sizes]

    def _load(self, latest: dict[bytes, int]) -> dict[bytes, list[Candidate]]:
        """The recorded versions of each content; of common ones those that rank first."""
        counts = {bytes(d): n for d, n in self._connection.rows_in(_COUNTS, latest)}
        few = [digest for digest, count in counts.items() if count <= _FEW]
        rows = self._connection.rows_in(_ALL, few, before=(self._project,))
        for digest in counts.keys() - set(few):
            for sql in (_MADE_BEFORE, _FOUND_FIRST):
                rows += self._connection.rows(sql, (digest, latest[digest], self._project))
        answer: dict[bytes, list[Candidate]] = {}
        for row in rows:
            answer.setdefault(bytes(row[0]), []).append(Candidate(*row))
        return answer


def find_link(graph: Graph, locator: Locator, digest: Digest) -> Link | None:
    """Where a file may come from that is there now and that no execution accessed."""
    links = ContentLinks(graph, LineageQueries(graph.connection))
    return links.before_now(locator, digest_bytes(digest))


def find_copied_versions(graph: Graph, keys: Iterable[int]) -> dict[int, tuple[Version, Link]]:
    """For each of these found versions that has a link: the likeliest version it is a copy of."""
    steps = LineageQueries(graph.connection)
    origins = steps.origins(keys)
    links = ContentLinks(graph, steps).before(steps.versions(set(origins.values())).values())
    best = steps.versions({link.best for link in links.values()})
    return {
        key: (best[links[origin].best], links[origin])
        for key, origin in origins.items()
        if origin in links
    }


def _needs_link(version: Version) -> bool:
    """Installed files and output streams have no unknown origin; empty files look all alike."""
    if not version.found or version.digest is None or version.size == 0:
        return False
    if version.locator.startswith(_NAMED):
        return False
    if version.locator.startswith(STREAM):
        return version.locator.endswith("/stdin")
    if version.mode is not None and stat.S_ISLNK(version.mode):
        return False
    kind = classify_locator(version.locator, version.package, version.mode)
    return kind not in ("package", "system")
