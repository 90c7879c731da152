"""Secrets that are not what they were when the Pods ran.

The audit log does not say which version of a Secret a Pod used. The API server knows when each of
its fields was written last; its data is never read.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from clew.documents.document import from_nanoseconds
from clew.documents.lineage.reproduction import NotReproduced
from clew.errors import NotAllowed
from clew.kube.objects import Key, dig, format_time, parse_time
from clew.kube.scratch.scratch_client import ScratchClient
from clew.replay.pods.stages import Stage


def check_secrets(client: ScratchClient, stages: Sequence[Stage]) -> Iterator[NotReproduced]:
    used: dict[tuple[str, str], int] = {}
    for stage in stages:
        for name in sorted(stage.secrets):
            secret = stage.facet.namespace, name
            used[secret] = min(stage.pod.started, used.get(secret, stage.pod.started))
    for (namespace, name), since in used.items():
        why = _find_change(client, Key("Secret", namespace, name), from_nanoseconds(since))
        if why is not None:
            yield NotReproduced(what=f"Secret {namespace}/{name}", why=why)


def _find_change(client: ScratchClient, key: Key, since: datetime) -> str | None:
    try:
        found = client.find_metadata(key)
    except NotAllowed:
        return "you lack the right to read it, so it may have changed"
    if found is None:
        return "it is gone"
    fields = dig(found, "metadata", "managedFields") or ()
    texts = [dig(found, "metadata", "creationTimestamp"), *(one.get("time") for one in fields)]
    written = max(filter(None, map(parse_time, texts)), default=since)
    return f"it was written since, at {format_time(written)}" if written > since else None
