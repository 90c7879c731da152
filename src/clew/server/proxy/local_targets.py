"""The targets of one machine: the child processes of the server."""

from clew.errors import NotFound
from clew.kube.objects import Key, find_reason
from clew.kube.workload_tokens import HEADER
from clew.server.proxy.targets import KINDS, Target, TargetKey
from clew.workloads.local.local_backend import LocalBackend


class LocalTargets:
    custom_prefixes = False
    hint = "the web app lists them, and can create it"

    def __init__(self, backend: LocalBackend) -> None:
        self._backend = backend

    async def find(self, key: TargetKey) -> Target | None:
        """Only a process that is ready has an address. Its access token is added to every
        request, since other users of this machine can reach its port."""
        address = self._backend.address(_resource_key(key))
        if address is None:
            return None
        return Target("127.0.0.1", address.port, headers={HEADER: address.token})

    async def explain(self, key: TargetKey) -> str | None:
        """The message of its condition."""
        try:
            return find_reason(self._backend.get(_resource_key(key)))
        except NotFound:
            return None


def _resource_key(key: TargetKey) -> Key:
    return Key(KINDS[key.kind], key.namespace, key.name)
