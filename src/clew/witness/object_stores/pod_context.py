"""The Pod that a sidecar belongs to, and the container that made a request.

All containers of a Pod share one network, so the sidecar cannot tell them apart. If one container
ran at the time, it was that one. If several did, the request is the sidecar's own activity, which
passes data on to each of them: the lineage of the Pod is exact, that within the Pod is not.
"""

from collections.abc import Iterator

import msgspec

from clew.documents.ids import Locator, Uid
from clew.prov.cluster.activity_uids import CONTAINER, POD
from clew.prov.cluster.facets import ContainerFacet, PodFacet, write_facet
from clew.prov.events import AnyEvent, Gap, Informed, Started

_SECOND = 10**9


class PodContainer(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a container. Times are nanoseconds since 1970, rounded to seconds as Kubernetes
    does; `ended` is None while it runs."""

    uid: Uid
    name: str
    started: int
    image: str = ""
    restart: int = 0
    init: bool = False
    ended: int | None = None

    def ran_at(self, at: int) -> bool:
        return self.started <= at and (self.ended is None or at < self.ended + _SECOND)


class PodContext(msgspec.Struct, frozen=True, kw_only=True):
    uid: Uid
    namespace: str
    name: str
    node: str
    started: int
    sidecar: PodContainer
    containers: tuple[PodContainer, ...] = ()
    """All others."""
    labels: dict[str, str] = {}
    stores: tuple[str, ...] = ()
    """The hosts that the Pod's annotation names as object stores."""
    over_ipv6: bool = False
    """It has an address of IPv6."""
    shared: bool = False
    """Several of the containers run at the same time."""

    def find_activity(self, at: int) -> PodContainer:
        """The container that made a request at this time, or the sidecar in their place."""
        ran = self.containers_at(at)
        return ran[0] if len(ran) == 1 and not self.shared else self.sidecar

    def containers_at(self, at: int) -> list[PodContainer]:
        return [one for one in self.containers if one.ran_at(at)]

    def describe(self, container: PodContainer) -> Iterator[AnyEvent]:
        """The Pod and one of its containers, as far as a node knows them."""
        pod = PodFacet(namespace=self.namespace, name=self.name, labels=dict(self.labels))
        yield Started(
            execution=self.uid,
            n=0,
            at=self.started,
            activity=self.uid,
            kind=POD,
            name=f"{self.namespace}/{self.name}",
            node=self.node,
            facets=write_facet(pod),
        )
        facet = ContainerFacet(name=container.name, restart=container.restart, init=container.init)
        yield Started(
            execution=self.uid,
            n=0,
            at=container.started,
            activity=container.uid,
            kind=CONTAINER,
            parent=self.uid,
            image=container.image or None,
            facets=write_facet(facet),
        )
        yield from self._report_unseen(container)

    def _report_unseen(self, container: PodContainer) -> Iterator[Gap]:
        if self.over_ipv6:
            why = "it is not redirected to the sidecar"
            yield self.report_gap(container, container.started, "traffic over IPv6", why)

    def report_gap(
        self, by: PodContainer, at: int, what: str, why: str, locator: Locator | None = None
    ) -> Gap:
        """What is not known of a container's traffic."""
        return Gap(
            execution=self.uid,
            n=0,
            at=at,
            activity=by.uid,
            what=what,
            why=why,
            locator=locator,
        )

    def pass_on(self, at: int, *, to_containers: bool) -> Iterator[Informed]:
        """What the sidecar read went to any of the containers, or came from any of them."""
        for one in self.containers_at(at):
            receiver, sender = (one, self.sidecar) if to_containers else (self.sidecar, one)
            yield Informed(
                execution=self.uid,
                n=0,
                at=at,
                activity=receiver.uid,
                by=sender.uid,
                via="socket",
            )
