"""Write the status of a resource, if it is not what was written last.

The cache shows what was written only a moment later, so that is remembered here.
"""

from clew.kube.client import Client
from clew.kube.objects import Json, Key, Object


class StatusWriter:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._written: dict[Key, tuple[str, Json]] = {}
        """The status written last, and the resourceVersion it was written to."""

    async def write(self, key: Key, resource: Object, status: Json) -> bool:
        """Whether it was written."""
        now = (str(resource["metadata"].get("resourceVersion")), status)
        if status == (resource.get("status") or {}) or self._written.get(key) == now:
            return False
        await self._client.write_status(resource, status)
        self._written[key] = now
        return True

    def forget(self, key: Key) -> None:
        self._written.pop(key, None)
