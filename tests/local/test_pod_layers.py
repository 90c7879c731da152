"""Layers that a container without privileges mounts itself, on this machine's kernel.

The containers have the capabilities and the namespaces that a runtime gives them by default.
"""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.local.test_node_agent import brief

from clew.agents.node.containers.container_discovery import ContainerProcess
from clew.agents.node.containers.mount_table import MountEntry
from clew.agents.node.containers.watch_plan import PlannedContainer, PlannedMount, PlannedPod
from clew.agents.node.containers.watched_container import WatchedContainer, WatchedMount
from clew.agents.node.file_witness import FileWitness
from clew.agents.node.lifecycle_events import node_started
from clew.agents.pod.container_socket import ContainerSocket, JoinedContainer
from clew.agents.pod.pod_observer import NoEvents, PodObserver
from clew.agents.pod.served_layer import ServedVolume
from clew.agents.spool import Spool
from clew.documents.ids import Uid
from clew.prov.cluster.watch_declarations import WATCHED_TO_END
from clew.prov.events import AnyEvent, Content, Looked
from clew.witness.tracer_binary import MOUNT
from clew.witness.volumes.selection import Policy, Subject
from clew.witness.volumes.volumes import claim_volume

CAPABILITIES = (
    "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,"
    "+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap"
)
"""Of a container of root, unless its Pod says otherwise."""
VOLUME = claim_volume("ml", "data", "pv-1", local=True)
POD = Uid("12345678123412341234123456789abc")


def _permitted() -> bool:
    words = ["unshare", "--mount", "--user", "--map-root-user", "true"]
    return os.geteuid() == 0 and subprocess.run(words, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not _permitted(), reason="it needs root and user namespaces")


class PodHere:
    """A Pod with one volume, and the sidecar's part in this process."""

    def __init__(self, home: Path) -> None:
        home.chmod(0o755)
        self.volume, self.socket = home / "volume", home / "socket"
        self.volume.mkdir()
        self.spool = Spool(home / "spool")
        self.joined: list[JoinedContainer] = []
        self._stopping = threading.Event()
        self._socket = ContainerSocket(self.socket, self._join, lambda *_: True)
        self._observer = PodObserver(self._socket.is_busy)
        point = os.fsencode(self.volume)
        self._mount = PlannedMount(VOLUME, point, b"", read_only=False, layer=True)
        planned = PlannedContainer(name="main", init=False, image="i", mounts=(self._mount,))
        self._plan = PlannedPod(
            uid=POD,
            namespace="ml",
            name="p",
            labels={},
            annotations={},
            addresses=(),
            containers={"main": planned},
        )
        self._subjects: dict[Uid, Subject] = {}
        self.witness = FileWitness(
            observer=self._observer,
            spool=self.spool,
            state=home,
            policy=Policy(),
            node=node_started(Uid("0" * 32), "here", 1, {}),
            subject_of=self._subjects,
        )
        self._thread = threading.Thread(target=self.witness.run, args=(self._stopping,))
        self._thread.start()
        self._socket.start()

    def run(
        self, script: str, *, user: int = 0, group: int = 0
    ) -> subprocess.CompletedProcess[str]:
        """Run a script in a container, in the volume; `group`: another one that its user is in."""
        words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "setpriv"]
        words += ["--bounding-set", CAPABILITIES, "--inh-caps", CAPABILITIES, "--no-new-privs"]
        if user:
            words += ["--reuid", str(user), "--regid", str(user), "--groups", str(group)]
        words += [str(MOUNT), str(self.socket), "main", str(self.volume), "--", "sh", "-c", script]
        return subprocess.run(
            words, cwd=self.volume, check=False, text=True, capture_output=True, timeout=60
        )

    def stop(self) -> list[AnyEvent]:
        """What the witness reported of the containers, which have ended."""
        self._stopping.set()
        self._thread.join()
        return [e for batch in self.spool.list_batches() for e in self.spool.read(batch)]

    def close(self) -> None:
        self.stop()
        self.spool.close()

    def _join(self, joined: JoinedContainer) -> None:
        self._stopping.wait()  # Kubernetes says which container it was when all have ended
        uid, now = Uid(f"{POD}/{len(self.joined):064x}"), time.time_ns()
        (volume,) = joined.volumes
        below = ServedVolume(volume.root)
        entry = MountEntry(0, b"", b"", volume.point, "fuse", read_only=False)
        planned = self._plan.containers["main"]
        process = ContainerProcess(0, [], False, now, b"", 0)
        container = WatchedContainer(uid, self._plan, planned, process, now, NoEvents())
        container.mounts.append(WatchedMount(self._mount, below, entry, volume.layer))
        self._subjects[uid] = Subject(namespace="ml", pod="p", container="main")
        self._observer.add(container, joined.process)
        self.joined.append(joined)


@pytest.fixture
def here() -> Iterator[PodHere]:
    with TemporaryDirectory() as home:  # whose parents every user may enter
        made = PodHere(Path(home))
        yield made
        made.close()


def test_a_container_records_what_it_does_below_its_own_layer(here: PodHere) -> None:
    (here.volume / "old").write_text("old")
    # The last file is closed by the end of the container's processes.
    script = (
        "cat old; echo new > draft; mv draft final; mkdir d; mv d e; rm old; exec 3> last; exit 3"
    )
    ran = here.run(script)
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "old", "")
    events = here.stop()
    assert brief(events) == [
        ("Used", "open", "/old"),
        ("Generated", "write", "/draft"),
        ("Used", "rename", "/draft"),
        ("Generated", "rename", "/final"),
        ("Invalidated", "rename", "/draft"),
        ("Invalidated", "delete", "/old"),
        ("Generated", "write", "/last"),
    ]
    assert {e.size for e in events if isinstance(e, Content)} == {0, 4}  # old is gone by then
    assert any(isinstance(e, Looked) and e.kind == WATCHED_TO_END for e in events)


def test_a_user_of_a_group_may_write_where_the_group_may(here: PodHere) -> None:
    os.chown(here.volume, 0, 2000)
    here.volume.chmod(0o2770)
    script = "mkdir d; echo x > d/x; stat -c '%u %g' d/x; stat -f -c %T d; cat /proc/self/uid_map"
    ran = here.run(script, user=1000, group=2000)
    assert (ran.returncode, ran.stderr) == (0, "")
    owner, kind, users = ran.stdout.splitlines()
    assert (owner, kind, users.split()) == ("1000 2000", "fuseblk", ["0", "0", "4294967295"])
    found = (here.volume / "d" / "x").stat()
    assert (found.st_uid, found.st_gid) == (1000, 2000)


@pytest.mark.parametrize("user", [0, 1000])
def test_a_container_can_neither_remove_its_layer_nor_gain_rights(here: PodHere, user: int) -> None:
    (here.volume / "secret").write_text("s\n")
    (here.volume / "secret").chmod(0o600)
    here.volume.chmod(0o755)
    attack = f"umount -l {here.volume}; mount -t tmpfs none /mnt; stat -f -c %T .; cat secret"
    ran = here.run(f"{attack}; grep CapBnd /proc/self/status", user=user)
    kind, *shown, bounds = ran.stdout.splitlines()
    assert int(bounds.split()[1], 16) & 1 << 21 == 0  # CAP_SYS_ADMIN
    assert (kind, shown) == ("fuseblk", [] if user else ["s"])
    assert ran.stderr.count("\n") >= 2


def test_a_command_runs_without_a_sidecar(here: PodHere) -> None:
    here.socket.unlink()
    ran = here.run("echo ran; exit 7")
    assert (ran.returncode, ran.stdout) == (7, "ran\n")
    assert "files are not observed" in ran.stderr
