"""Places in a cluster, as text.

    pvc://NAMESPACE/CLAIM                 a claim as a whole, by its name at a time
    pvc://NAMESPACE/CLAIM@VOLUME/PATH     a file on the volume that the claim was bound to
    emptydir://PODUID/VOLUME/PATH         a file on a volume of one Pod
    configmap://NAMESPACE/NAME, secret://NAMESPACE/NAME
    image://sha256:DIGITS
    pod://NAMESPACE/NAME, pod://PODUID, ip://ADDRESS, service://NAMESPACE/NAME

A path is written as in `file://` locators. Names of Kubernetes have neither `/` nor `@`.
"""

import ipaddress
import re
from typing import NamedTuple

from clew.documents.ids import Locator, Uid
from clew.prov.locators import escape_path, unescape_path

_VOLUME = re.compile(r"pvc://([^/@]+)/([^/@]+)@([^/]+)(/.*)?", re.DOTALL)
_OBJECT = re.compile(r"s3://([^/]+)/(.+)", re.DOTALL)
_DIGEST = re.compile(r"(?:.*@)?(sha256:[0-9a-f]{64})", re.DOTALL)


def claim_locator(namespace: str, claim: str) -> Locator:
    """A claim as a whole: whatever is on the volume it is bound to at the time."""
    return Locator(f"pvc://{namespace}/{claim}")


def volume_locator(namespace: str, claim: str, volume: str, path: bytes = b"") -> Locator:
    """A file on a volume; `path` is absolute within it. `volume` is the PersistentVolume's name, so
    that a deleted and recreated claim is another volume. Without a path: the volume."""
    return Locator(f"pvc://{namespace}/{claim}@{volume}{escape_path(path)}")


class VolumePlace(NamedTuple):
    """A file on a volume; without a path the volume."""

    namespace: str
    claim: str
    volume: str
    path: bytes


def split_volume_locator(locator: Locator) -> VolumePlace | None:
    """None for any other kind of locator."""
    match = _VOLUME.fullmatch(locator)
    if match is None:
        return None
    return VolumePlace(match[1], match[2], match[3], unescape_path(match[4] or ""))


def split_object_locator(locator: Locator) -> tuple[str, str] | None:
    """The bucket and the key of an object."""
    match = _OBJECT.fullmatch(locator)
    return (match[1], match[2]) if match else None


def empty_dir_locator(pod: Uid, volume: str, path: bytes = b"") -> Locator:
    return Locator(f"emptydir://{pod}/{volume}{escape_path(path)}")


def config_map_locator(namespace: str, name: str) -> Locator:
    return Locator(f"configmap://{namespace}/{name}")


def secret_locator(namespace: str, name: str) -> Locator:
    return Locator(f"secret://{namespace}/{name}")


def image_locator(image_id: str) -> Locator | None:
    """An image by its digest, from `repository@sha256:…` or `sha256:…`; None if it has none."""
    digest = image_digest(image_id)
    return Locator(f"image://{digest}") if digest else None


def image_digest(image_id: str) -> str | None:
    match = _DIGEST.fullmatch(image_id)
    return match[1] if match else None


def pod_name_locator(namespace: str, name: str) -> Locator:
    """The name of a Pod, which another Pod may have later."""
    return Locator(f"pod://{namespace}/{name}")


def pod_locator(pod: Uid) -> Locator:
    return Locator(f"pod://{pod}")


def service_locator(namespace: str, name: str) -> Locator:
    return Locator(f"service://{namespace}/{name}")


def address_locator(address: str) -> Locator | None:
    """An IP address; None if it is not one."""
    try:
        return Locator(f"ip://{ipaddress.ip_address(address)}")
    except ValueError:
        return None
