"""A watched volume, and the locators of its files.

The same path on two volumes or two nodes is two files: each volume has a locator that no other one
has, and the paths within it follow.
"""

from msgspec import Struct

from clew.documents.ids import Locator, Uid
from clew.prov.cluster.locators import claim_locator, empty_dir_locator, volume_locator
from clew.prov.locators import escape_path, file_locator


class Volume(Struct, frozen=True):
    """One volume of a Pod."""

    key: str
    """Identifies the volume on this node."""
    whole: Locator
    """What `looked` names: everything on it."""
    local: bool = False
    """It never leaves this node, so only what runs here changes it."""

    def locate(self, path: bytes) -> Locator:
        """The locator of a file; `path` is absolute within the volume."""
        return Locator(f"{self.key}{escape_path(path)}")


def claim_volume(namespace: str, claim: str, volume: str, *, local: bool = False) -> Volume:
    """A PersistentVolumeClaim that is bound to the PersistentVolume `volume`."""
    key = volume_locator(namespace, claim, volume)
    return Volume(key, claim_locator(namespace, claim), local)


def empty_dir_volume(pod: Uid, name: str) -> Volume:
    key = empty_dir_locator(pod, name)
    return Volume(key, key, local=True)


def host_volume(machine: str, path: bytes) -> Volume:
    """A directory of the node."""
    locator = file_locator(machine, path.rstrip(b"/"))
    return Volume(locator, locator)
