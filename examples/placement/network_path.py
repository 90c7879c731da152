"""Run a command behind a long network path: `network_path.py COMMAND...`, as root.

Packets to and from the addresses in FAR wait, as on a path with the round-trip time RTT_MS and the
rate MBIT in each direction; all others do not. It does what `tc netem` does, which many kernels
lack: the kernel gives the packets to a TUN device, by a route on their way out and by a filter on
their way in, and this program passes them on when they are due. At the end it prints how many there
were, as a line of JSON.
"""

import fcntl
import heapq
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time

DEVICE, OUTSIDE = "path0", "eth0"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x1, 0x1000
LARGEST = 65_536


class Direction:
    """When packets arrive that go one way."""

    def __init__(self, delay, rate):
        self.delay = delay
        self.rate = rate
        self.free = 0.0  # when the packets before have left
        self.packets = self.bytes = 0

    def due(self, packet):
        self.packets += 1
        self.bytes += len(packet)
        self.free = max(time.monotonic(), self.free) + 8 * len(packet) / self.rate
        return self.free + self.delay


def open_path(far):
    """The TUN device to which the kernel gives all packets to and from the addresses."""
    tunnel = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tunnel, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    (outside,) = json.loads(run("ip", "-json", "-4", "address", "show", "dev", OUTSIDE))
    own = outside["addr_info"][0]["local"]
    run("ip", "link", "set", DEVICE, "mtu", str(outside["mtu"]), "up")
    run("tc", "qdisc", "add", "dev", OUTSIDE, "ingress")
    for address in far:
        run("ip", "route", "add", address, "dev", DEVICE, "src", own)
        taken = ("protocol", "ip", "u32", "match", "ip", "src", f"{address}/32")
        given = ("action", "mirred", "egress", "redirect", "dev", DEVICE)
        run("tc", "filter", "add", "dev", OUTSIDE, "parent", "ffff:", *taken, *given)
    return tunnel, socket.inet_aton(own)


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def carry(tunnel, own, ended, out, back):
    """Pass packets on when they are due, until the other end of `ended` is closed."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as network:
        network.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, OUTSIDE.encode())
        waiting, number = [], 0
        while True:
            timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
            ready, _, _ = select.select([tunnel, ended], [], [], timeout)
            if tunnel in ready:
                packet = os.read(tunnel, LARGEST)
                if packet[0] >> 4 == 4:
                    number += 1
                    to_here = packet[16:20] == own
                    due = (back if to_here else out).due(packet)
                    heapq.heappush(waiting, (due, number, to_here, packet))
            if ended in ready:
                return
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, to_here, packet = heapq.heappop(waiting)
                if to_here:
                    os.write(tunnel, packet)
                else:
                    network.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))


def main(command):
    tunnel, own = open_path(os.environ["FAR"].split())
    delay, rate = float(os.environ["RTT_MS"]) / 2000, float(os.environ["MBIT"]) * 1e6
    out, back = Direction(delay, rate), Direction(delay, rate)
    ended, held = os.pipe()
    with subprocess.Popen(command, pass_fds=[held]) as process:
        os.close(held)  # the command has it: it is closed when the command ends
        carry(tunnel, own, ended, out, back)
    packets, size = out.packets + back.packets, out.bytes + back.bytes
    print(json.dumps({"delayed_packets": packets, "delayed_bytes": size}))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
