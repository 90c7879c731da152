"""Builds what the witnesses of a cluster observe, for tests of queries.

`audit` has the events of the audit witness, `files` those of the node agent and the sidecar, so
that a test can leave a witness out. Uids are made from names; times count up by a second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from blake3 import blake3

from clew.documents.ids import Digest, Locator, Uid
from clew.prov.cluster.activity_uids import LEFT, container_uid, node_uid
from clew.prov.cluster.facets import (
    ClaimFacet,
    ContainerFacet,
    ControllerFacet,
    Owner,
    PodFacet,
    RequestFacet,
    write_facet,
)
from clew.prov.cluster.locators import (
    address_locator,
    claim_locator,
    config_map_locator,
    pod_locator,
    pod_name_locator,
    service_locator,
    volume_locator,
)
from clew.prov.cluster.observation_numbers import number_events
from clew.prov.cluster.watch_declarations import UNWATCHED, WATCHED, WATCHED_TO_END
from clew.prov.events import (
    Alias,
    AnyEvent,
    Content,
    Ended,
    Gap,
    Generated,
    Invalidated,
    Looked,
    Started,
    Used,
    Version,
)
from clew.prov.graph import Graph

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def digest(text: str) -> Digest:
    return Digest(f"blake3:{blake3(text.encode()).hexdigest()}")


def uid_of(name: str) -> Uid:
    return Uid(blake3(name.encode()).hexdigest(length=16))


def image_of(name: str) -> str:
    return f"sha256:{blake3(name.encode()).hexdigest()}"


class ClusterBuilder:
    def __init__(self) -> None:
        self.audit: list[AnyEvent] = []
        self.files: list[AnyEvent] = []
        self.now = START
        self.volumes: dict[tuple[str, str], str] = {}
        self._count = 0

    def tick(self) -> int:
        self.now += SECOND
        return self.now

    def claim(self, namespace: str, name: str, volume: str) -> Uid:
        """A claim that is created and bound to a volume."""
        uid = uid_of(f"claim {namespace}/{name} {volume}")
        own: dict[str, Any] = {"execution": uid, "n": 0}
        facet = ClaimFacet(namespace=namespace, name=name, volume=volume)
        self.audit += [
            Started(
                **own, at=self.tick(), activity=uid, kind="claim", name=f"{namespace}/{name}",
                facets=write_facet(facet),
            ),
            Alias(
                **own, at=self.tick(), a=claim_locator(namespace, name),
                b=volume_locator(namespace, name, volume),
            ),
        ]  # fmt: skip
        self.volumes[namespace, name] = volume
        return uid

    def request(
        self, verb: str, resource: str, namespace: str, name: str, *, agent: str = "alice",
        subresource: str = "", data: str | None = None,
    ) -> Version:  # fmt: skip
        """A request by hand: of a ConfigMap or Secret with new data, or one that touches a Pod."""
        self._count += 1
        uid = uid_of(f"request {self._count}")
        own: dict[str, Any] = {"execution": uid, "n": 0}
        facet = RequestFacet(
            verb=verb, resource=resource, subresource=subresource, namespace=namespace, name=name
        )
        places = {"configmaps": config_map_locator, "pods": pod_name_locator}
        version = Version(places[resource](namespace, name), uid, 1)
        at = self.tick()
        how = subresource or ("edit" if resource == "pods" else "write")
        self.audit += [
            Started(
                **own, at=at, activity=uid, kind="request", agent=agent, facets=write_facet(facet)
            ),
            Generated(**own, at=at, activity=uid, version=version, how=how, finished=True),
        ]
        if data is not None:
            self.audit.append(_content(own, version, data, at))
        return version

    def service(self, namespace: str, name: str, address: str) -> Service:
        """A Service with an address, which leads to no Pod yet."""
        return Service(self, namespace, name, address)

    def node(self, name: str, facets: dict[str, Any]) -> None:
        uid = node_uid(name, "boot")
        self.files.append(
            Started(
                execution=uid, n=0, at=self.tick(), activity=uid, kind="node", name=name,
                facets=facets,
            )
        )  # fmt: skip

    def pod(self, namespace: str, name: str, **facts: Any) -> PodBuilder:
        return PodBuilder(self, namespace, name, **facts)

    def fold(self, graph: Graph, *, files: bool = True) -> None:
        graph.import_observations(number_events(self.audit + (self.files if files else [])))


class Service:
    """It leads to each Pod from `add` until `remove`."""

    def __init__(self, cluster: ClusterBuilder, namespace: str, name: str, address: str) -> None:
        self._cluster = cluster
        self._place = service_locator(namespace, name)
        uid, at = uid_of(f"service {namespace}/{name} {address}"), cluster.tick()
        self._own: dict[str, Any] = {"execution": uid, "n": 0}
        self._uid = uid
        facet = ControllerFacet(namespace=namespace, name=name, kind="Service")
        cluster.audit += [
            Started(
                **self._own, at=at, activity=uid, kind="controller", name=f"{namespace}/{name}",
                facets=write_facet(facet),
            ),
            Alias(**self._own, at=at, a=Locator(f"ip://{address}"), b=self._place),
        ]  # fmt: skip

    def add(self, pod: PodBuilder) -> None:
        self._cluster.audit.append(
            Alias(
                execution=pod.uid, n=0, at=self._cluster.tick(), a=self._place,
                b=pod_locator(pod.uid),
            )
        )  # fmt: skip

    def remove(self, pod: PodBuilder) -> None:
        self._cluster.audit.append(
            Looked(
                execution=pod.uid, n=0, at=self._cluster.tick(), activity=pod.uid, kind=LEFT,
                locator=self._place,
            )
        )  # fmt: skip

    def end(self) -> None:
        at = self._cluster.tick()
        self._cluster.audit.append(Ended(**self._own, at=at, activity=self._uid, status=0))


class PodBuilder:
    """A Pod with one container, that runs from now until `end`."""

    def __init__(
        self,
        cluster: ClusterBuilder,
        namespace: str,
        name: str,
        *,
        image: str = "app",
        tag: str | None = None,
        command: tuple[str, ...] = ("run",),
        claims: Iterable[str] = (),
        read_only: Iterable[str] = (),
        watched: bool = True,
        address: str | None = None,
        incarnation: int = 0,
        owner: Owner | None = None,
        node: str = "one",
        environment: dict[str, str] | None = None,
    ) -> None:
        self.cluster, self.namespace, self.name = cluster, namespace, name
        self.uid = uid_of(f"pod {namespace}/{name} {incarnation}")
        self.container = container_uid(self.uid, f"containerd://{self.uid * 2}") or Uid("")
        self._own: dict[str, Any] = {"execution": self.uid, "n": 0}
        self._count: dict[Locator, int] = {}
        self._watched: list[Locator] = []
        self._made: dict[Locator, Version] = {}
        at = cluster.tick()
        facet = PodFacet(namespace=namespace, name=name, owner=owner)
        audit = cluster.audit
        audit += [
            Started(
                **self._own, at=at, activity=self.uid, kind="pod", name=f"{namespace}/{name}",
                agent="alice", node=node, facets=write_facet(facet),
            ),
            Alias(
                **self._own, at=at, a=pod_name_locator(namespace, name), b=pod_locator(self.uid)
            ),
        ]  # fmt: skip
        if address and (place := address_locator(address)):
            audit.append(Alias(**self._own, at=at, a=place, b=pod_locator(self.uid)))
        self.started = cluster.tick()
        audit.append(
            Started(
                **self._own, at=self.started, activity=self.container, kind="container",
                parent=self.uid, command=command, image=tag or f"{image}:1", name="main",
                environment=environment or {}, node=node,
                facets=write_facet(ContainerFacet(name="main")),
            )
        )  # fmt: skip
        picture = Version(Locator(f"image://{image_of(image)}"), self.uid, 1)
        audit += [
            Used(**self._own, at=at + SECOND, activity=self.container, version=picture, how="exec"),
            Content(
                **self._own, at=at + SECOND, version=picture, digest=Digest(image_of(image)),
                size=0, mode=0, mtime=0, stored=False,
            ),
        ]  # fmt: skip
        for claim in (*claims, *read_only):
            self._mount(claim, writable=claim not in read_only, watched=watched)

    def _mount(self, claim: str, *, writable: bool, watched: bool) -> None:
        place, audit = claim_locator(self.namespace, claim), self.cluster.audit
        at = self.started
        audit.append(
            Used(**self._own, at=at, activity=self.container, version=Version(place, self.uid, 1))
        )
        if writable:
            made = Version(place, self.container, 1)
            audit.append(Generated(**self._own, at=at, activity=self.container, version=made))
        if watched:
            self._look(WATCHED, place, at)
            self._watched.append(place)

    def _look(self, kind: str, place: Locator, at: int) -> None:
        own = {**self._own, "at": at, "activity": self.container}
        self.cluster.files.append(Looked(**own, kind=kind, locator=place, answer="fanotify"))

    def lose(self, claim: str) -> PodBuilder:
        """The agent lost accesses to a claim."""
        self._look(UNWATCHED, claim_locator(self.namespace, claim), self.cluster.tick())
        return self

    def place(self, path: str) -> Locator:
        """A path `CLAIM/FILE` of a claim; any locator as it is."""
        if "://" in path:
            return Locator(path)
        claim, _, rest = path.partition("/")
        volume = self.cluster.volumes[self.namespace, claim]
        return volume_locator(self.namespace, claim, volume, f"/{rest}".encode())

    def _next(self, place: Locator, maker: Uid) -> Version:
        self._count[place] = self._count.get(place, 0) + 1
        return Version(place, maker, self._count[place])

    def read(
        self, path: str, text: str | None = None, *, how: str = "open", stored: bool = True
    ) -> PodBuilder:
        """Find a file; `text` is what is in it, None if no witness hashed it."""
        version = self._next(self.place(path), self.uid)
        at, files = self.cluster.tick(), self.cluster.files
        files.append(Used(**self._own, at=at, activity=self.container, version=version, how=how))
        if text is not None:
            files.append(_content(self._own, version, text, at, stored=stored))
        return self

    def connect(self, *places: str) -> PodBuilder:
        """Open a connection: to an address, and by the name that the client gave."""
        at = self.cluster.tick()
        for place in places:
            version = self._next(Locator(place), self.uid)
            self.cluster.files.append(
                Used(**self._own, at=at, activity=self.container, version=version, how="connect")
            )
        return self

    def write(
        self, path: str, text: str | None = None, *, stored: bool = True, source: str | None = None
    ) -> PodBuilder:
        place = self.place(path)
        version = self._made[place] = self._next(place, self.container)
        at, files = self.cluster.tick(), self.cluster.files
        files.append(
            Generated(**self._own, at=at, activity=self.container, version=version, finished=True)
        )
        if text is not None:
            files.append(_content(self._own, version, text, at, stored=stored, source=source))
        return self

    def rename(
        self, path: str, target: str, text: str | None = None, *, stored: bool = True
    ) -> PodBuilder:
        """Rename a file; `text` is what is in it."""
        source, place = self.place(path), self.place(target)
        old = self._made.pop(source, None) or self._next(source, self.uid)
        new = self._made[place] = self._next(place, self.container)
        own: dict[str, Any] = {**self._own, "at": self.cluster.tick(), "activity": self.container}
        self.cluster.files += [
            Used(**own, version=old, how="rename"),
            Generated(**own, version=new, how="rename", finished=True),
            Invalidated(**own, version=old, how="rename"),
        ]
        if text is not None:
            self.cluster.files += [
                _content(self._own, version, text, own["at"], stored=stored)
                for version in (old, new)
            ]
        return self

    def use(self, place: str, text: str | None = None) -> PodBuilder:
        """Use a ConfigMap or Secret, as the audit witness sees it."""
        version = self._next(Locator(place), self.uid)
        at, audit = self.cluster.tick(), self.cluster.audit
        audit.append(Used(**self._own, at=at, activity=self.container, version=version))
        if text is not None:
            audit.append(_content(self._own, version, text, at))
        return self

    def gap(self, what: str, why: str) -> PodBuilder:
        at = self.cluster.tick()
        self.cluster.files.append(
            Gap(**self._own, at=at, activity=self.container, what=what, why=why)
        )
        return self

    def end(self, status: int = 0, *, seen: bool = True) -> PodBuilder:
        """`seen`: an agent that watched the container saw it end."""
        at = self.cluster.tick()
        for place in self._watched if seen else ():
            self._look(WATCHED_TO_END, place, at)
        for activity in (self.container, self.uid):
            self.cluster.audit.append(Ended(**self._own, at=at, activity=activity, status=status))
        return self


def _content(
    own: dict[str, Any], version: Version, text: str, at: int, *, stored: bool = True,
    source: str | None = None,
) -> Content:  # fmt: skip
    return Content(
        **own, at=at, version=version, digest=digest(text), size=len(text), mode=0o100644, mtime=at,
        stored=stored, source=source,
    )  # fmt: skip


def machine_learning(cluster: ClusterBuilder, *, watched: bool = True) -> dict[str, PodBuilder]:
    """The workload of the acceptance tests: two preprocessors share a volume but no file."""
    cluster.claim("team", "data", "pv-1")
    claims = {"claims": ["data"], "watched": watched}
    pods = {}
    pods["ingest"] = cluster.pod("team", "ingest", image="ingest", **claims)
    pods["ingest"].read("s3://lake/raw.csv", "raw").write("data/raw.csv", "raw copy")
    pods["ingest"].write("s3://lake/labels", "labels").end()
    pods["clean"] = cluster.pod("team", "clean", image="clean", **claims)
    pods["clean"].read("data/raw.csv", "raw copy").write("data/clean.csv", "clean").end()
    pods["other"] = cluster.pod("team", "other", image="other", **claims)
    pods["other"].read("s3://lake/other.csv", "other").write("data/other.csv", "odd").end()
    pods["train"] = cluster.pod("team", "train", image="train", **claims)
    pods["train"].read("data/clean.csv", "clean").read("s3://lake/labels", "labels")
    pods["train"].write("data/model.pkl", "model").end()
    pods["evaluate"] = cluster.pod("team", "evaluate", image="evaluate", **claims)
    pods["evaluate"].read("data/model.pkl", "model").write("data/metrics.json", "0.9").end()
    return pods
