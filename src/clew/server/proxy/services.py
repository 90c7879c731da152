"""The targets of a cluster: the Services that the operator made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from clew.kube import objects
from clew.kube.finding import Servers
from clew.server.proxy.targets import Key, Target, header

_KINDS = {"notebook": "Notebook", "tensorboard": "Tensorboard", "pvcviewer": "PVCViewer"}


class Services:
    chosen = True
    hint = "kubectl get notebooks,tensorboards,pvcviewers says which there are"

    def __init__(self) -> None:
        self._servers = Servers()

    async def find(self, key: Key) -> Target | None:
        found = await self._servers.find(objects.Key(_KINDS[key.kind], key.namespace, key.name))
        if found is None:
            return None
        return Target(
            host=found.host,
            port=found.port,
            rewrite=found.way.rewrite,
            headers=dict(_sound(found.way.headers.items())),
            timeout=found.way.timeout or Target.timeout,
            base=found.way.base,
        )


def _sound(given: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    """Those that can be headers: anybody may have written the annotation they come from."""
    for each in given:
        try:
            yield header(each)
        except ValueError:
            continue
