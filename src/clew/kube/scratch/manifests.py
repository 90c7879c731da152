"""The objects of a scratch space.

All belong to one Lease, which the command renews while it runs: deleting it deletes everything, and
a Lease that was not renewed tells the next command what a killed one left.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from clew.kube.objects import (
    Json,
    Object,
    annotations_of,
    dig,
    labels_of,
    name_of,
    parse_time,
    uid_of,
)

LABEL = "clew.dev/reproduction"
PREFIX = "clew-reproduce-"
"""Of namespaces that a command made for itself: others are never deleted."""
BUCKETS = "clew.dev/buckets"
"""On the Lease: how many fresh buckets the command makes."""
MAX_BUCKETS = 100
LEASE_SECONDS = 120
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GRACE = timedelta(minutes=5)
"""How old a namespace without a Lease may be: a command makes the Lease right after it."""
ROOT = "/volumes"
"""Where the helper has the claims, each by its name."""


@dataclass(frozen=True)
class Space:
    """`name`: the value of the label on everything in it; `lease`: the uid of its Lease."""

    name: str
    namespace: str
    lease: str = ""

    @property
    def labels(self) -> dict[str, str]:
        return {LABEL: self.name}


def make_namespace(space: Space) -> Json:
    """Pods in it cannot have access to their node, whatever a record asks for."""
    labels = {**space.labels, "pod-security.kubernetes.io/enforce": "baseline"}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": space.namespace, "labels": labels},
    }


def bucket_name(owner: str, number: int) -> str:
    """`owner`: of the fresh buckets of one command, from `bucket_owner`; or a random word, if it
    has no Lease."""
    return f"{PREFIX}{owner}-{number}"


def bucket_owner(lease: str) -> str:
    """From the uid of a Lease: the API server gives it, and no other Lease can have it."""
    return lease.replace("-", "")


def list_buckets(lease: Object) -> list[str]:
    """The fresh buckets of a command, by its Lease. Others may make a Lease with the same label,
    so only the uid says which they are."""
    count, uid = annotations_of(lease).get(BUCKETS, ""), uid_of(lease)
    if not count.isdecimal() or not _UID.fullmatch(uid):
        return []
    total = min(int(count), MAX_BUCKETS)
    return [bucket_name(bucket_owner(uid), number) for number in range(total)]


def make_lease(space: Space, holder: str, now: datetime, *, buckets: int = 0) -> Json:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": f"{PREFIX}{space.name}",
            "namespace": space.namespace,
            "labels": space.labels,
            "annotations": {BUCKETS: str(buckets)},
        },
        "spec": {
            "holderIdentity": holder[:200],
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": format_micro_time(now),
        },
    }


def format_micro_time(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def is_expired(lease: Object, now: datetime) -> bool:
    """Whether the command that held a Lease is gone."""
    renewed = parse_time(str(dig(lease, "spec", "renewTime") or ""))
    seconds = dig(lease, "spec", "leaseDurationSeconds")
    if renewed is None or not isinstance(seconds, int):
        return True
    return now > renewed + timedelta(seconds=min(seconds, 10 * LEASE_SECONDS))


def find_abandoned(
    namespaces: Sequence[Object], leases: Sequence[Object], now: datetime
) -> tuple[list[str], list[tuple[str, str]]]:
    """The namespaces, and the Leases (namespace, name) elsewhere, that killed commands left.

    A namespace is deleted only if it has the name and the label of one that a command makes, and no
    command holds a Lease in it: anyone who may label namespaces could label another one.
    """
    held = {one["metadata"]["namespace"] for one in leases if not is_expired(one, now)}
    known = {one["metadata"]["namespace"] for one in leases}
    ours = {
        name_of(one): parse_time(one["metadata"].get("creationTimestamp")) or now
        for one in namespaces
        if name_of(one) == f"{PREFIX}{labels_of(one).get(LABEL)}"
    }
    gone = [
        name
        for name, made in ours.items()
        if name not in held and (name in known or now > made + _GRACE)
    ]
    expired = [
        (one["metadata"]["namespace"], name_of(one))
        for one in leases
        if one["metadata"]["namespace"] not in ours
        and name_of(one) == f"{PREFIX}{labels_of(one).get(LABEL)}"
        and is_expired(one, now)
    ]
    return gone, expired


def put_into(space: Space, made: Object) -> Json:
    """An object with the namespace, the label and the owner of the space."""
    owner = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "name": f"{PREFIX}{space.name}",
        "uid": space.lease,
    }
    metadata = dict(made["metadata"])
    metadata["labels"] = {**(metadata.get("labels") or {}), **space.labels}
    metadata |= {"namespace": space.namespace, "ownerReferences": [owner]}
    return {**made, "metadata": metadata}


def make_claim(name: str, *, size: str, storage_class: str | None) -> Json:
    spec: Json = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
    }
    if storage_class:
        spec["storageClassName"] = storage_class
    return _object("v1", "PersistentVolumeClaim", name, spec=spec)


def make_config_map(name: str, data: Mapping[str, str], binary: Mapping[str, str]) -> Json:
    return _object("v1", "ConfigMap", name, data=dict(data), binaryData=dict(binary))


def make_secret(name: str, values: Mapping[str, str]) -> Json:
    """`values`: in Base64."""
    return _object("v1", "Secret", name, data=dict(values))


def make_isolation(name: str, space: Space) -> Json:
    """A NetworkPolicy by which the Pods of the space reach nothing, and nothing reaches them."""
    spec = {
        "podSelector": {"matchLabels": space.labels},
        "policyTypes": ["Ingress", "Egress"],
    }
    return _object("networking.k8s.io/v1", "NetworkPolicy", name, spec=spec)


def make_helper(name: str, image: str, claims: Sequence[str], *, seconds: int) -> Json:
    """A Pod that has the claims and waits: programs in it read and write their files.

    It runs as root, because programs of any user wrote the files, with no more than that needs.
    """
    volumes = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": claim}}
        for number, claim in enumerate(claims)
    ]
    mounts = [
        {"name": f"v{number}", "mountPath": f"{ROOT}/{claim}"}
        for number, claim in enumerate(claims)
    ]
    container = {
        "name": "helper",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", str(seconds)],
        "volumeMounts": mounts,
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {
                "drop": ["ALL"],
                "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER"],
            },
        },
    }
    spec = {
        "containers": [container],
        "volumes": volumes,
        "restartPolicy": "Never",
        "activeDeadlineSeconds": seconds,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    }
    return _object("v1", "Pod", name, spec=spec)


def _object(version: str, kind: str, name: str, **parts: object) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **parts}
