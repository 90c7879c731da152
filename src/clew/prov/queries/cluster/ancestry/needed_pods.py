"""Which Pods a plan may run: the makers of what the target or another such Pod needs, if the store
has not got it.

There may be more of them than a plan has, never fewer: also Pods that made the same bytes, and all
writers of a volume on which no witness saw the files.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from clew.documents.ids import Locator, Uid
from clew.prov.cluster.ancestry_types import FoundVersion
from clew.prov.graph import Graph
from clew.prov.row_keys import digest_bytes, location_key

TARGET = 0
"""Stands for the target among Pods: no hash is 0."""

_SAME_BYTES = """
SELECT DISTINCT v.location, c.digest, v.execution FROM version v JOIN content c ON c.version = v.id
WHERE v.location IN ({}) AND v.maker <> v.execution
"""


class NeededPods:
    """Finds them step by step: what a Pod read is added once it is known."""

    def __init__(
        self,
        graph: Graph,
        pods: Mapping[Uid, int],
        list_writers: Callable[[Locator], Iterable[int] | None],
    ) -> None:
        """`list_writers`: of a volume as a whole; None: it is none."""
        self._graph = graph
        self._pods = pods
        self._keys = set(pods.values())
        self._list_writers = list_writers
        self._makers: dict[int | Locator, set[int | Locator]] = {}
        """By what was added, whom it needs: Pods, or whole volumes."""
        self._needed: set[int | Locator] = set()
        self._missing: set[int] = {TARGET}

    def add(self, read: Mapping[int, Iterable[FoundVersion]]) -> None:
        """Add what each of these Pods read."""
        readers: dict[tuple[int, bytes], list[int]] = defaultdict(list)
        for pod, versions in read.items():
            makers: set[int | Locator] = set()
            self._makers[pod] = makers
            for one in versions:
                if one.stored:
                    continue
                makers |= {self._pods[uid] for uid in one.makers}
                if one.locator in self._makers or self._add_volume(one.locator):
                    makers.add(one.locator)
                elif one.digest is not None:
                    place = location_key(self._graph.project_uid, one.locator)
                    readers[place, digest_bytes(one.digest)].append(pod)
        places = {place for place, _ in readers}
        for place, digest, maker in self._graph.connection.rows_in(_SAME_BYTES, places):
            if maker in self._keys:
                for pod in readers.get((place, bytes(digest)), ()):
                    self._makers[pod].add(maker)

    def _add_volume(self, locator: Locator) -> bool:
        writers = self._list_writers(locator)
        if writers is not None:
            self._makers[locator] = {pod for pod in writers if pod in self._keys}
        return writers is not None

    def list_spare(self, pods: Iterable[int]) -> set[int]:
        """Those of these that no plan runs."""
        return set(pods) - self._needed

    def find_missing(self) -> set[int]:
        """Those of which it is not known yet what they read."""
        waiting: list[int | Locator] = [*self._missing]
        self._missing = set()
        while waiting:
            one = waiting.pop()
            makers = self._makers.get(one)
            if makers is None:
                assert isinstance(one, int)
                self._missing.add(one)
            elif one not in self._needed:
                self._needed.add(one)
                waiting += makers - self._needed
        return self._missing
