"""The versions of objects that a Pod met, each with its ordinal.

A version is known by its version id, or by its ETag in a bucket without versions. What is
remembered is limited: after something was forgotten, ordinals of places that are not known begin
at the time in seconds, which no count reaches, so that no ordinal is given twice.
"""

import re

import msgspec

from clew.documents.ids import Locator, Uid
from clew.prov.events import Version

MAX_PLACES = 5000
"""All of it is written with each checkpoint of the log."""
MAX_VERSIONS = 20
"""Of one place: a Pod may overwrite a key forever."""
_SECOND = 10**9
_VERSION_ID = re.compile(r"[!-~]{1,1024}")
_ETAG = re.compile(r'(?:W/)?"?([!#-~]{1,200}?)"?')


class ObjectState(msgspec.Struct, frozen=True, kw_only=True):
    """How a version is named by the server; either may be unknown."""

    version_id: str | None = None
    etag: str | None = None  # without quotes

    @property
    def source(self) -> str | None:
        """As `content.source` has it."""
        if self.version_id:
            return f"versionId={self.version_id}"
        return f"etag={self.etag}" if self.etag else None


def read_state(version_id: str | None, etag: str | None) -> ObjectState:
    """From the values of headers. `null` is the version id in a bucket without versions."""
    match = _ETAG.fullmatch(etag or "")
    known = version_id != "null" and _VERSION_ID.fullmatch(version_id or "")
    return ObjectState(
        version_id=version_id if known else None,
        etag=match[1] if match else None,
    )


class KnownVersion(msgspec.Struct, array_like=True):
    version: Version
    state: ObjectState
    size: int | None = None
    has_content: bool = False
    used_by: list[Uid] = []


class _Place(msgspec.Struct, array_like=True):
    last: int
    versions: list[KnownVersion] = []  # the latest at the end


class VersionTable(msgspec.Struct):
    places: dict[Locator, _Place] = {}
    forgot: bool = False

    def find(self, locator: Locator, state: ObjectState) -> KnownVersion | None:
        """The version that the server names so. If it did not name it, it is not known which."""
        wanted = state.source
        place = self.places.get(locator)
        if wanted is None or place is None:
            return None
        found = (known for known in reversed(place.versions) if known.state.source == wanted)
        return next(found, None)

    def latest(self, locator: Locator) -> KnownVersion | None:
        place = self.places.get(locator)
        return place.versions[-1] if place and place.versions else None

    def add(self, locator: Locator, maker: Uid, state: ObjectState, *, at: int) -> KnownVersion:
        place = self.places.pop(locator, None) or self._begin_place(at)
        self.places[locator] = place  # what was met last is forgotten last
        place.last += 1
        known = KnownVersion(Version(locator, maker, place.last), state)
        place.versions = [*place.versions[1 - MAX_VERSIONS :], known]
        return known

    def _begin_place(self, at: int) -> _Place:
        if len(self.places) >= MAX_PLACES:
            del self.places[next(iter(self.places))]
            self.forgot = True
        return _Place(at // _SECOND if self.forgot else 0)
