"""What runs notebooks on one machine needs no library of Kubernetes: they come with an extra."""

import subprocess
import sys

PROGRAM = """
import sys
sys.modules.update(dict.fromkeys(("httpx2", "kopf", "lightkube", "psycopg")))
import clew.server.listener, clew.server.proxy.local_targets, clew.workloads.local.local_backend
"""


def test_one_machine_needs_no_extra() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert not ran.returncode, ran.stderr
