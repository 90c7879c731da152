"""The veth pair between this machine and the network of the cluster, and NAT for its Pods.

This machine reaches every Pod and Service by its address; Pods reach what this machine reaches.
Other machines cannot connect to the cluster through this one. The rules are in an nftables table of
their own; no other table is changed.
"""

import ipaddress
import json
import socket
from contextlib import suppress
from pathlib import Path

from tools.cluster.commands import ClusterError, run
from tools.cluster.layout import Cluster
from tools.cluster.namespaces import holder_pid, run_inside
from tools.cluster.shared_state import delete_note, read_note, write_note

CANDIDATES = range(131, 220)
FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
FORWARDING_NOTE = "ip_forward"  # the note of its value before the first cluster


def free_network() -> int:
    """The first 10.N.0.0/16 that this machine does not use."""
    routes = json.loads(run("ip", "-json", "route", "show", "table", "all"))
    named = [route["dst"] for route in routes] + nameservers()
    known = [ipaddress.ip_network(name, strict=False) for name in named if _is_address(name)]
    for number in CANDIDATES:
        candidate = ipaddress.ip_network(f"10.{number}.0.0/16")
        if not any(net.version == 4 and candidate.overlaps(net) for net in known if net.prefixlen):
            return number
    raise ClusterError("every network from 10.131.0.0/16 on is in use on this machine")


def connect_network(cluster: Cluster) -> None:
    forwarding = FORWARDING.read_text().strip()
    if read_note(FORWARDING_NOTE) is None:
        write_note(FORWARDING_NOTE, forwarding)
    width = mtu()
    here, there, mark = f"{cluster.outside}/24", f"{cluster.control}/24", cluster.mark
    run(
        "ip", "link", "add", mark, "type", "veth", "peer", "eth0", "netns", str(holder_pid(cluster))
    )
    run("ip", "address", "add", here, "dev", mark)
    run("ip", "link", "set", mark, "mtu", width, "up")
    run_inside(cluster, "ip", "link", "set", "lo", "up")
    more = [cluster.dns, *(node.address for node in cluster.nodes)]
    for address in (there, *(f"{address}/32" for address in more)):
        run_inside(cluster, "ip", "address", "add", address, "dev", "eth0")
    run_inside(cluster, "ip", "link", "set", "eth0", "mtu", width, "up")
    run_inside(cluster, "ip", "route", "add", "default", "via", cluster.outside)
    run_inside(cluster, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    run("ip", "route", "add", cluster.everything, "via", cluster.control)
    run("nft", "-f", "-", given=_rules(cluster))
    if forwarding != "1":
        FORWARDING.write_text("1")


def disconnect_network(cluster: Cluster) -> None:
    """Remove what is left outside; the kernel removes the veth pair soon after the namespaces."""
    while cluster.mark in _links():
        with suppress(ClusterError):  # the kernel has removed it meanwhile
            run("ip", "link", "delete", cluster.mark)
    if f"table ip {cluster.mark}" in run("nft", "list", "tables"):
        run("nft", "delete", "table", "ip", cluster.mark)
    if not any(name.startswith("clew") for name in _links()):  # this was the last
        if read_note(FORWARDING_NOTE) == "0":
            FORWARDING.write_text("0")
        delete_note(FORWARDING_NOTE)


def nameservers() -> list[str]:
    """The nameservers of this machine that the cluster can reach, too."""
    for file in ("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"):
        words = [line.split() for line in Path(file).read_text().splitlines()]
        servers = [line[1] for line in words if len(line) > 1 and line[0] == "nameserver"]
        reachable = [server for server in servers if not _is_local(server)]
        if reachable or not Path("/run/systemd/resolve/resolv.conf").exists():
            return reachable
    return []


def mtu() -> str:
    """Packets from Pods must fit through this machine's own way out."""
    routes = json.loads(run("ip", "-json", "route", "show", "default"))
    if not routes:
        return "1500"
    return Path(f"/sys/class/net/{routes[0]['dev']}/mtu").read_text().strip()


def _rules(cluster: Cluster) -> str:
    network, mark = cluster.everything, cluster.mark
    return f"""
        table ip {mark} {{
            chain out {{
                type nat hook postrouting priority 100
                ip saddr {network} ip daddr != {network} masquerade
            }}
            chain others {{
                type filter hook forward priority 0
                iifname != "{mark}" oifname "{mark}" ct state != {{ established, related }} drop
            }}
        }}
    """


def _links() -> set[str]:
    return {name for _, name in socket.if_nameindex()}


def _is_address(name: str) -> bool:
    return name[:1].isdigit()


def _is_local(server: str) -> bool:
    address = ipaddress.ip_address(server.partition("%")[0])
    return address.is_loopback or address.version == 6
