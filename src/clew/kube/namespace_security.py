"""Whether a namespace enforces the Pod Security Standard `restricted`, cached for some seconds.

The namespace is read, not watched: so the operator needs only the right to get the namespaces where
it works, which a RoleBinding in each can grant.
"""

from time import monotonic

from clew.kube.client import Client
from clew.kube.resources.pod_security import enforces_restricted

_CACHE_SECONDS = 10.0


class Namespaces:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, tuple[float, bool]] = {}

    async def enforces_restricted(self, name: str) -> bool:
        known = self._known.get(name)
        if known is not None and monotonic() - known[0] < _CACHE_SECONDS:
            return known[1]
        found = await self._client.get_namespace(name)
        answer = found is not None and enforces_restricted(found)
        self._known[name] = monotonic(), answer
        return answer
