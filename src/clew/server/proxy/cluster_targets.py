"""The targets of a cluster: the Services that the operator made."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from clew.kube import objects
from clew.kube.service_addresses import ServiceLookup
from clew.kube.shared_secret import access_key
from clew.kube.workload_tokens import HEADER, derive_token
from clew.server.proxy.targets import KINDS, Target, TargetKey, check_header


class ClusterTargets:
    custom_prefixes = True
    hint = "kubectl get notebooks,tensorboards,pvcviewers lists them"

    def __init__(self) -> None:
        self._servers = ServiceLookup()
        self._access_key = ""

    async def find(self, key: TargetKey) -> Target | None:
        resource = _resource_key(key)
        found = await self._servers.find(resource)
        if found is None:
            return None
        headers = dict(_valid_headers(found.route.headers.items()))
        if found.route.access:
            self._access_key = self._access_key or await asyncio.to_thread(access_key)
            headers[HEADER] = derive_token(self._access_key, resource, found.uid)
        return Target(
            host=found.host,
            port=found.port,
            rewrite=found.route.rewrite,
            headers=headers,
            timeout=found.route.timeout or Target.timeout,
            base=found.route.base,
        )

    async def explain(self, key: TargetKey) -> str | None:
        """The message of its condition: an image cannot be pulled, a quota is used up, …"""
        return await self._servers.explain(_resource_key(key))


def _resource_key(key: TargetKey) -> objects.Key:
    return objects.Key(KINDS[key.kind], key.namespace, key.name)


def _valid_headers(given: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    """The valid ones: any user may have written the annotation that they come from."""
    for each in given:
        try:
            yield check_header(each)
        except ValueError:
            continue
