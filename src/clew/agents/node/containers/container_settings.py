"""What a container will run as and which addresses it has, before its program starts.

Until then its first process is the runtime's: it has the runtime's user and label. The runtime was
told the container's in a file, the `config.json` of the OCI bundle; and the kernel knows the
addresses seconds before the API server does.
"""

import ipaddress
import os
from typing import NamedTuple

import msgspec

from clew.agents.node.kernel.processes import is_ending, open_in_root, parent_of

_CONFIG = "config.json"
_MAX_CONFIG = 4 << 20
_MAX_TABLE = 1 << 20
_MAX_COMMAND = 1 << 16
_MAX_PARENTS = 1000
"""How often to look for the parent while one ends and another one takes its place."""


class ContainerSettings(NamedTuple):
    """As the runtime was told."""

    user: int
    group: int
    labels: tuple[str, ...]
    """Of AppArmor and SELinux."""


class _User(msgspec.Struct):
    uid: int = 0
    gid: int = 0


class _Process(msgspec.Struct):
    user: _User = msgspec.field(default_factory=_User)
    apparmorProfile: str = ""  # noqa: N815
    selinuxLabel: str = ""  # noqa: N815


class _Config(msgspec.Struct):
    process: _Process


def read_settings(pid: int, container_id: str) -> ContainerSettings | None:
    """The settings of the container whose first process this is; None where no bundle is found.
    The parent is the runtime, which was told the bundle, or later the shim, which works in one."""
    try:
        for _ in range(_MAX_PARENTS):
            parent = parent_of(pid)
            found = _read_bundle(parent, container_id)
            if found is not None or (parent_of(pid) == parent and not is_ending(parent)):
                return found
    except OSError:
        return None
    return None


def _read_bundle(parent: int, container_id: str) -> ContainerSettings | None:
    try:
        with open(f"/proc/{parent}/cmdline", "rb") as file:
            bundle = find_bundle(file.read(_MAX_COMMAND).split(b"\0"))
        if bundle is not None:
            opened = open_in_root(parent, os.path.join(bundle, _CONFIG.encode()))
        else:
            opened = os.open(f"/proc/{parent}/cwd/../{container_id}/{_CONFIG}", os.O_RDONLY)
        with open(opened, "rb") as file:
            return parse_config(file.read(_MAX_CONFIG))
    except (OSError, ValueError):
        return None


def find_bundle(command: list[bytes]) -> bytes | None:
    """The bundle that the command line of a runtime or its monitor names."""
    for word, following in zip(command, [*command[1:], b""], strict=True):
        if word in (b"--bundle", b"-b"):
            return following or None
        if word.startswith(b"--bundle="):
            return word.partition(b"=")[2] or None
    return None


def parse_config(document: bytes) -> ContainerSettings:
    """ValueError if it is not the configuration of a container."""
    process = msgspec.json.decode(document, type=_Config).process
    labels = tuple(one for one in (process.apparmorProfile, process.selinuxLabel) if one)
    return ContainerSettings(process.user.uid, process.user.gid, labels)


def read_addresses(pid: int) -> tuple[str, ...]:
    """The addresses in the network of a process, but for those that every network has."""
    found: list[str] = []
    for name, parse in (("fib_trie", parse_ipv4), ("if_inet6", parse_ipv6)):
        try:
            with open(f"/proc/{pid}/net/{name}") as file:
                found += parse(file.read(_MAX_TABLE))
        except (OSError, ValueError):
            continue
    addresses = map(ipaddress.ip_address, dict.fromkeys(found))
    return tuple(str(one) for one in addresses if not one.is_loopback and not one.is_link_local)


def parse_ipv4(table: str) -> list[str]:
    """The own addresses in `/proc/net/fib_trie`: a line with the address precedes those that say
    what it is."""
    found, address = [], ""
    for line in table.splitlines():
        words = line.split()
        if words[:1] == ["|--"] and len(words) > 1:
            address = words[1]
        elif words == ["/32", "host", "LOCAL"]:
            found.append(address)
    return found


def parse_ipv6(table: str) -> list[str]:
    """The addresses in `/proc/net/if_inet6`."""
    words = (line.split() for line in table.splitlines())
    return [str(ipaddress.IPv6Address(bytes.fromhex(one[0]))) for one in words if one]
