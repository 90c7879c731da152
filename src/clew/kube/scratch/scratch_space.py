"""A namespace, or a part of one, in which a command runs Pods and from which all of them go.

Everything is owned by a Lease (`manifests`): deleting it, or the namespace that was made, deletes
all. While the space is open, a thread renews the Lease; if the command is killed, it expires, and
the next command removes what it finds. A Pod also has a deadline of its own.
"""

import contextlib
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Self

from clew.errors import ClewError, NotAllowed, NotFound, Unavailable
from clew.kube.objects import Json, Key, Object, name_of, namespace_of, uid_of
from clew.kube.scratch import manifests
from clew.kube.scratch.manifests import LABEL, PREFIX, Space
from clew.kube.scratch.scratch_client import ScratchClient

_RENEW_SECONDS = manifests.LEASE_SECONDS / 4
_TRIES, _TRY_SECONDS = 15, 2.0


class ScratchSpace:
    """Use it in a `with`: it is removed at the end."""

    def __init__(self, client: ScratchClient, namespace: str | None = None) -> None:
        """`namespace`: one that exists; by default one is made."""
        name = secrets.token_hex(4)
        self._client = client
        self._own = namespace is None
        self.space = Space(name, namespace or f"{PREFIX}{name}")
        self.buckets = 0
        """How many fresh buckets go with it; set it before it is opened."""
        self.is_kept = False
        """Set if a bucket could not be deleted: the Lease, which names it, then stays for the next
        command."""
        self._closed = threading.Event()
        self._renewal = threading.Thread(target=self._renew, name="lease", daemon=True)

    def __enter__(self) -> Self:
        if self._own:
            self._client.create(manifests.make_namespace(self.space))
        try:
            holder = f"{socket.gethostname()} {os.getpid()}"
            now = datetime.now(UTC)
            lease = manifests.make_lease(self.space, holder, now, buckets=self.buckets)
            made = self._client.create(lease)
            self.space = Space(self.space.name, self.space.namespace, uid_of(made))
        except BaseException:
            self.remove()
            raise
        self._renewal.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._renewal.join()
        if not self.is_kept:
            self.remove()

    def add(self, made: Object) -> Json:
        """Create an object that goes with the space."""
        return self._client.create(manifests.put_into(self.space, made))

    def delete_pod(self, name: str) -> None:
        """Delete a Pod, and wait until its volumes are free."""
        key = Key("Pod", self.space.namespace, name)
        with contextlib.suppress(NotFound):
            self._client.delete(key, foreground=False)
            while (pod := self._client.find(key)) is not None:
                self._client.await_change(pod, 10.0)

    def remove(self) -> None:
        """Remove everything. If the API server does not answer for a while, the next command does
        it: what the Pods left is worth more than an error here."""
        for _ in range(_TRIES):
            try:
                _delete(self._client, self._own, self.space.namespace, f"{PREFIX}{self.space.name}")
                break
            except Unavailable:
                time.sleep(_TRY_SECONDS)

    def _renew(self) -> None:
        key = Key("Lease", self.space.namespace, f"{PREFIX}{self.space.name}")
        while not self._closed.wait(_RENEW_SECONDS):
            now = manifests.format_micro_time(datetime.now(UTC))
            with contextlib.suppress(ClewError):  # it is renewed again before it expires
                self._client.merge_patch(key, {"spec": {"renewTime": now}})


def remove_abandoned(
    client: ScratchClient,
    namespace: str | None = None,
    *,
    remove_buckets: Callable[[list[str]], bool],
) -> list[str]:
    """Remove what killed commands left, and return the names of the namespaces. `namespace`: where
    to look if the caller may not list those of the cluster. Buckets go first: the Lease says
    which they are, and stays until `remove_buckets` says that all of them are gone."""
    now = datetime.now(UTC)
    namespaces: list[Json] = []
    try:
        namespaces = client.list("Namespace", label=LABEL)
        leases = client.list("Lease", label=LABEL)
    except NotAllowed:
        leases = client.list("Lease", namespace, label=LABEL) if namespace else []
    gone, expired = manifests.find_abandoned(namespaces, leases, now)
    left: set[tuple[str, str]] = set()
    for lease in leases:
        key, buckets = (namespace_of(lease), name_of(lease)), manifests.list_buckets(lease)
        abandoned = (key[0] in gone or key in expired) and manifests.is_expired(lease, now)
        if abandoned and buckets and not remove_buckets(buckets):
            left.add(key)
    gone = [name for name in gone if name not in {place for place, _ in left}]
    expired = [key for key in expired if key not in left]
    for name in gone:
        _delete(client, True, name, "")
    for place, name in expired:
        _delete(client, False, place, name)
    return [*gone, *(place for place, _ in expired)]


def remove_all_abandoned() -> list[str]:
    """The same in the whole cluster, but for what owns a bucket."""
    with ScratchClient() as client:
        return remove_abandoned(client, remove_buckets=lambda _: False)


def _delete(client: ScratchClient, own: bool, namespace: str, lease: str) -> None:
    key = Key("Namespace", namespace, namespace) if own else Key("Lease", namespace, lease)
    with contextlib.suppress(NotFound):
        client.delete(key, foreground=False)
