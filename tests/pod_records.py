"""A record of Pods that is written by hand: what `clew reproduce` gets from witnesses otherwise."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from blake3 import blake3

from clew.documents.ids import Digest, Locator, Uid
from clew.prov.cluster.ancestry_types import (
    AncestorPod,
    Ancestry,
    FoundVersion,
    MadeVersion,
    Peer,
    VolumeWriters,
)
from clew.prov.cluster.facets import PodFacet


def digest(content: bytes) -> Digest:
    return Digest(f"blake3:{blake3(content).hexdigest()}")


class HandwrittenRecord:
    """Pods on one volume; the last one made the target."""

    def __init__(self, image: str, image_id: str, *, namespace: str = "ml", began: int = 0) -> None:
        """`began`: when the first Pod started, in nanoseconds."""
        self._namespace = namespace
        self._began = began
        self._volume = Locator(f"pvc://{namespace}/data@pv-1")
        self._image = image
        self.image_id = image_id
        self._pods: list[AncestorPod] = []
        self._specs: dict[Uid, dict[str, Any]] = {}
        self._stored: dict[Digest, bytes] = {}

    def pod(
        self,
        name: str,
        script: str,
        *,
        reads: Mapping[str, bytes] | None = None,
        writes: Mapping[str, bytes],
        env: Sequence[Mapping[str, Any]] = (),
        peers: Sequence[Peer] = (),
        secrets: Sequence[str] = (),
        **spec: Any,
    ) -> None:
        """`reads` that no earlier Pod wrote are stored. `env`: of the container, as Kubernetes has
        it; `peers`, `secrets`: what it connected to, and had; `spec`: more of the Pod's spec."""
        mount = {"name": "data", "mountPath": "/data"}
        container = {
            "name": "main",
            "image": self._image,
            "command": ["sh", "-ec", script],
            "env": [dict(one) for one in env],
            "volumeMounts": [mount],
        }
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        uid = Uid(name)
        makers = {made.locator: pod.uid for pod in self._pods for made in pod.outputs}
        inputs = [
            FoundVersion(locator=Locator(f"secret://{self._namespace}/{name}")) for name in secrets
        ]
        for path, content in (reads or {}).items():
            locator = Locator(f"{self._volume}/{path}")
            found = FoundVersion(
                locator=locator,
                makers=(makers[locator],) if locator in makers else (),
                digest=digest(content),
                stored=locator not in makers,
                size=len(content),
            )
            if found.stored:
                self._stored[digest(content)] = content
            inputs.append(found)
        outputs = tuple(
            MadeVersion(locator=Locator(f"{self._volume}/{path}"), digest=digest(content))
            for path, content in writes.items()
        )
        self._specs[uid] = {"containers": [container], "volumes": [claim], **spec}
        self._pods.append(
            AncestorPod(
                uid=uid,
                namespace=self._namespace,
                name=name,
                started=self._began + len(self._pods) * 10,
                ended=self._began + len(self._pods) * 10 + 5,
                images={"main": self.image_id, "wait": self.image_id},
                inputs=tuple(inputs),
                outputs=outputs,
                volumes=(self._volume,),
                peers=tuple(peers),
            )
        )

    def find_ancestry(self, target: str, as_of: datetime | None) -> Ancestry:
        last = self._pods[-1]
        wanted = tuple(
            FoundVersion(locator=made.locator, makers=(last.uid,), digest=made.digest)
            for made in last.outputs
        )
        writers = tuple((pod.uid, pod.started) for pod in self._pods)
        return Ancestry(
            target=target,
            wanted=wanted,
            pods=tuple(self._pods),
            volumes=(VolumeWriters(locator=self._volume, writers=writers),),
            wanted_volumes=(self._volume,),
        )

    def load_facets(self, uids: Iterable[Uid]) -> Mapping[Uid, PodFacet]:
        return {
            uid: PodFacet(namespace=self._namespace, name=uid, spec=self._specs[uid])
            for uid in uids
        }

    def load_hardware(self, node: str | None, at: int | None) -> Mapping[str, Any]:
        return {"node": node}

    def read(self, digest: Digest) -> Iterator[bytes]:
        yield self._stored[digest]
