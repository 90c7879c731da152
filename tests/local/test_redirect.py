"""`clew-redirect`: whose connections go to the sidecar, by the rules of a real kernel."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy" / "images" / "sidecar" / "clew-redirect"
USER, PORT = 19733, 15001
# In a network of its own: which rule counts the first packet of a connection of these ids.
PROGRAM = """
import os, socket, subprocess, sys
script, port, uid, gid = sys.argv[1], *map(int, sys.argv[2:])
for words in ("link set lo up", "link add out type veth peer name other", "link set other up",
              "address add 198.51.100.1/24 dev out", "link set out up"):
    subprocess.run(["ip", *words.split()], check=True)
subprocess.run(["sh", script, str(port), "19733"], check=True)
if os.fork() == 0:
    os.setgroups([])
    os.setgid(gid)
    os.setuid(uid)
    client = socket.socket()
    client.setblocking(False)
    client.connect_ex(("198.51.100.9", 80))
    os._exit(0)
os.wait()
listed = subprocess.run(
    ["iptables", "-t", "nat", "-L", "CLEW", "-v", "-x", "-n"],
    check=True, stdout=subprocess.PIPE, text=True,
)
rules = [line.split() for line in listed.stdout.splitlines()[2:]]
print(*(rule[2] for rule in rules if rule[0] != "0"))
"""


@pytest.mark.parametrize(
    ("uid", "gid", "said"),
    [
        (USER, USER, "RETURN"),
        (USER, 0, "REDIRECT"),
        (0, USER, "REDIRECT"),
        (1000, 1000, "REDIRECT"),
    ],
)
def test_only_the_user_and_the_group_of_the_sidecar_are_exempt(
    uid: int, gid: int, said: str
) -> None:
    place = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if os.geteuid() or not shutil.which("iptables", path=place):
        pytest.skip("needs root and iptables (Debian: iptables)")
    words = ["unshare", "--net", sys.executable, "-c", PROGRAM, SCRIPT, str(PORT)]
    ran = subprocess.run(
        [*words, str(uid), str(gid)],
        env={"PATH": place},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout.strip() == said, ran.stderr
