"""The node agent on this machine's kernel: real cgroups, mounts, fanotify; no Kubernetes."""

import errno
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from blake3 import blake3
from tests.local.node_container import NodeContainer, fuse_mount, pods_directory
from tests.wait import wait_until

from clew.agents.node.containers import container_discovery, watched_container
from clew.agents.node.containers.container_discovery import (
    ContainerFound,
    ContainerGone,
    ContainerProcess,
    ContainerWatch,
    read_process,
)
from clew.agents.node.containers.mount_table import parse_mounts
from clew.agents.node.containers.watch_plan import (
    Choice,
    PlannedContainer,
    PlannedMount,
    PlannedPod,
    UnseenVolume,
)
from clew.agents.node.containers.watched_container import WatchedContainer, WatchedMount
from clew.agents.node.event_translation import AccessTranslator
from clew.agents.node.file_witness import FileWitness
from clew.agents.node.kernel.fanotify import (
    ACCESS,
    CLOSE_NOWRITE,
    CLOSE_WRITE,
    MODIFY,
    OPEN,
    EventGroup,
    FileEvent,
)
from clew.agents.node.kernel.volume_mount import VolumeMount, handle_of
from clew.agents.node.lifecycle_events import node_started
from clew.agents.node.node_agent import ContainerChoice
from clew.agents.node.node_observer import NodeObserver
from clew.agents.spool import Spool
from clew.documents.ids import Uid
from clew.prov.cluster.watch_declarations import UNWATCHED, WATCHED, WATCHED_TO_END
from clew.prov.events import AnyEvent, Content, Gap, Generated, Invalidated, Looked, Used
from clew.witness.tracer_binary import LAYER
from clew.witness.volumes.accesses import FileAccess
from clew.witness.volumes.selection import ContentRule, Policy, Rule
from clew.witness.volumes.volumes import claim_volume

VOLUME = claim_volume("ml", "data", "pv-1", local=True)


def _permitted() -> bool:
    try:
        EventGroup(processes=True).close()
    except OSError:
        return False
    return os.geteuid() == 0


pytestmark = pytest.mark.skipif(not _permitted(), reason="fanotify needs CAP_SYS_ADMIN")


class Node:
    """A node with one volume."""

    def __init__(self, home: Path, pods: Path, policy: Policy) -> None:
        self.home, self.pods, self.policy = home, pods, policy
        self.volume = home / "volume"
        self.volume.mkdir(exist_ok=True)
        self.plans: dict[Uid, PlannedPod] = {}
        self.spool = Spool(home / "spool")
        self.closed = False
        self._stopping = threading.Event()
        self._containers: list[NodeContainer] = []
        choice = ContainerChoice(policy)
        self.witness = FileWitness(
            observer=NodeObserver(ContainerWatch(pods), self.plans.get, choice.choose),
            spool=self.spool,
            state=home,
            policy=policy,
            node=node_started(Uid("0" * 32), "here", 1, {}),
            subject_of=choice.subjects,
        )
        self._thread = threading.Thread(target=self.witness.run, args=(self._stopping,))
        self._thread.start()

    def container(self, *command: str, layer: bool | None = False) -> NodeContainer:
        """A container that is ready to run, once it is watched."""
        made = NodeContainer(self.pods, self.volume, self.home, *command)
        self._containers.append(made)
        before = self.witness.counts["containers"]
        self.plan(made, layer=layer)
        if not self.policy.exclude:
            wait_until("watched", lambda: self.witness.counts["containers"] > before)
        return made

    def plan(
        self,
        made: NodeContainer,
        *,
        layer: bool | None = False,
        unseen: tuple[UnseenVolume, ...] = (),
    ) -> None:
        """The API server names the Pod of this container. `unseen`: its volumes, if they cannot be
        watched."""
        pod = Uid(made.pod.replace("-", ""))
        point = os.fsencode(made.point)
        mount = PlannedMount(VOLUME, point, b"", read_only=False, layer=layer)
        planned = PlannedContainer(
            name="main", init=False, image="i", mounts=() if unseen else (mount,), unseen=unseen
        )
        self.plans[pod] = PlannedPod(
            uid=pod,
            namespace="ml",
            name="p",
            labels={},
            annotations={},
            addresses=(),
            containers={"main": planned},
        )

    def run(self, script: str, *, layer: bool | None = False) -> NodeContainer:
        """Run a shell script in a container of its own."""
        made = self.container("sh", "-c", script, layer=layer)
        made.run()
        made.remove()
        if not self.policy.exclude:  # else a name that changes may be another container's
            wait_until("ended", lambda: made.uid not in self.witness.watched())
        return made

    def stop(self) -> list[AnyEvent]:
        """What the agent reported."""
        self._stopping.set()
        self._thread.join()
        return [e for batch in self.spool.list_batches() for e in self.spool.read(batch)]

    def leave(self) -> None:
        """End the agent, not the containers."""
        if not self._stopping.is_set():
            self.stop()
        if not self.closed:
            self.spool.close()
            self.closed = True

    def close(self) -> None:
        self.leave()
        for container in self._containers:
            container.remove()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Node]]:
    with pods_directory() as pods:
        nodes: list[Node] = []

        def start(policy: Policy | None = None) -> Node:
            nodes.append(Node(tmp_path, pods, policy or Policy(exclude=())))
            return nodes[-1]

        try:
            yield start
        finally:
            for node in nodes:
                node.close()


def brief(events: list[AnyEvent], of: NodeContainer | None = None) -> list[tuple[str, str, str]]:
    """Kind, how and path of the accesses, in the order of their times."""
    return [
        (type(e).__name__, e.how, e.version.locator.removeprefix(VOLUME.key))
        for e in sorted(events, key=lambda e: e.at)
        if isinstance(e, Used | Generated | Invalidated) and (of is None or e.activity == of.uid)
    ]


def looks(events: list[AnyEvent]) -> list[tuple[str, str]]:
    """What the agent declared of each container."""
    return [(e.activity, e.kind) for e in events if isinstance(e, Looked)]


def digests(events: list[AnyEvent]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for event in events:
        if isinstance(event, Content):
            path = event.version.locator.removeprefix(VOLUME.key)
            found.setdefault(path, set()).add(event.digest)
    return found


def test_one_container_writes_and_another_one_reads(start: Callable[..., Node]) -> None:
    node = start()
    writer = node.run("echo raw > raw.csv; cat raw.csv")
    reader = node.run("tr a-z A-Z < raw.csv > out.tmp; mv out.tmp out; rm raw.csv; cat out")
    events = node.stop()
    assert brief(events, writer) == [("Generated", "write", "/raw.csv")]
    assert brief(events, reader) == [
        ("Used", "open", "/raw.csv"),
        ("Generated", "write", "/out.tmp"),
        ("Used", "rename", "/out.tmp"),
        ("Generated", "rename", "/out"),
        ("Invalidated", "rename", "/out.tmp"),
        ("Invalidated", "delete", "/raw.csv"),
    ]
    assert digests(events)["/raw.csv"] == {
        f"blake3:{blake3(b'raw' + chr(10).encode()).hexdigest()}"
    }
    assert digests(events)["/out"] == digests(events)["/out.tmp"]
    assert not [event for event in events if isinstance(event, Gap)]
    assert looks(events) == [
        (writer.uid, WATCHED),
        (writer.uid, WATCHED_TO_END),
        (reader.uid, WATCHED),
        (reader.uid, WATCHED_TO_END),
    ]


def test_hostile_names_links_and_files_lead_nowhere_and_hold_nothing_up(
    start: Callable[..., Node], tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("host secret")
    node = start()
    made = node.run(
        f"ln -s {secret} link; ln -s {tmp_path} up; echo x >> link; cat link >/dev/null;"
        " mkfifo pipe; (echo y > pipe &); cat pipe >/dev/null;"
        " printf 'n' > \"$(printf 'new\\nline\\377')\";"
        " truncate -s 3T sparse; : > empty"
    )
    events = node.stop()
    names = {path for _, _, path in brief(events, made)}
    assert names == {"/new\nline%FF", "/sparse", "/empty"}
    hashed = digests(events)
    assert f"blake3:{blake3(secret.read_bytes()).hexdigest()}" not in set().union(*hashed.values())
    assert hashed["/new\nline%FF"] == {f"blake3:{blake3(b'n').hexdigest()}"}
    gaps = [event.what for event in events if isinstance(event, Gap)]
    assert gaps == ["content of a large file"]


def test_a_pod_that_writes_what_an_earlier_one_left_has_no_gap(start: Callable[..., Node]) -> None:
    node = start()
    node.run("echo old > log; echo old > table")
    made = node.run("echo more >> log; echo new > table")
    events = node.stop()
    assert sorted(brief(events, made)) == [
        ("Generated", "write", "/log"),
        ("Generated", "write", "/table"),
        ("Used", "append", "/log"),
    ]
    assert not [event for event in events if isinstance(event, Gap)]


@pytest.fixture
def translated(tmp_path: Path) -> Iterator[Callable[..., list[FileAccess]]]:
    """The accesses that events of the files `x` and `y` mean, in a container that ended."""
    (tmp_path / "x").write_text("x")
    (tmp_path / "y").write_text("y")
    places = (tmp_path, tmp_path / "x", tmp_path / "y")
    directory, x, y = (os.open(one, os.O_RDONLY) for one in places)
    mount = PlannedMount(VOLUME, b"/data", b"", False)
    (entry,) = parse_mounts(b"31 1 8:1 / /data rw - ext4 x rw")
    planned = PlannedContainer("main", False, "", (mount,))
    pod = PlannedPod(Uid("p"), "ml", "p", {}, {}, (), {"main": planned})
    process = ContainerProcess(1, [], False, 0, b"", 0)
    watched = WatchedContainer(Uid("p/c"), pod, planned, process, 0, EventGroup())
    watched.mounts.append(WatchedMount(mount, VolumeMount(directory), entry))
    translator = AccessTranslator(watched, lambda *_: True, Counter())
    handles = {b"x": handle_of(x), b"y": handle_of(y)}

    def translate(*seen: tuple[int, bytes]) -> list[FileAccess]:
        """From masks and names."""
        parent = handle_of(directory)
        events = [FileEvent(mask, 1, parent, name, handles[name]) for mask, name in seen]
        accesses = list(translator.translate(iter(events), 5))
        assert list(translator.long_writes(10**18)) == []
        return accesses

    yield translate
    os.close(x)
    os.close(y)
    watched.close()


def test_a_write_that_is_reported_after_its_end_is_one_write(
    translated: Callable[..., list[FileAccess]],
) -> None:
    """The kernel merges closing with opening, and puts it before what happened between them."""
    read, write = translated(
        (OPEN | CLOSE_WRITE, b"x"), (MODIFY, b"x"), (OPEN | CLOSE_NOWRITE, b"y")
    )
    assert (read.path, read.written) == (b"/y", False)
    assert (write.path, write.written, write.closed) == (b"/x", True, True)
    assert write.at > read.at


def test_a_write_that_was_merged_comes_before_the_read_by_another_process(
    translated: Callable[..., list[FileAccess]],
) -> None:
    """The kernel merges events of one process only."""
    accesses = translated(
        (MODIFY | CLOSE_WRITE, b"x"), (ACCESS | CLOSE_NOWRITE, b"y"), (ACCESS | CLOSE_NOWRITE, b"x")
    )
    assert [(one.path, one.written) for one in accesses] == [
        (b"/y", False),
        (b"/x", True),
        (b"/x", False),
    ]
    assert sorted({one.at for one in accesses}) == [one.at for one in accesses]


@pytest.mark.parametrize("layer", [False, True])
def test_a_hard_link_has_the_maker_of_the_file(start: Callable[..., Node], layer: bool) -> None:
    node = start()
    maker = node.run("echo raw > raw; ln raw other", layer=layer)
    reader = node.run("cat other > copy", layer=layer)
    writer = node.run("echo more >> other", layer=layer)
    last = node.run("cat raw > last", layer=layer)
    events = node.stop()
    assert brief(events, maker) == [("Generated", "write", "/raw"), ("Generated", "link", "/other")]
    assert ("Used", "open", "/other") in brief(events, reader)
    (used,) = [path for kind, _, path in brief(events, last) if kind == "Used"]
    assert used in {"/raw", "/other"}  # to the layer, a file has the name that it had last
    made = {path for kind, _, path in brief(events, writer) if kind == "Generated"}
    assert made == {"/other", used}
    assert not [event for event in events if isinstance(event, Gap)]
    first, second = (f"blake3:{blake3(one).hexdigest()}" for one in (b"raw\n", b"raw\nmore\n"))
    assert digests(events)["/other"] == {first, second}


def test_a_renamed_directory_takes_its_files_along(start: Callable[..., Node]) -> None:
    node = start()
    made = node.run(
        "mkdir -p out.tmp/deep; echo 1 > out.tmp/deep/a; mv out.tmp out; cat out/deep/a;"
        " echo 2 > out/deep/b"
    )
    reader = node.run("cat out/deep/a out/deep/b")
    events = node.stop()
    # Under its first name and then renamed, or at once under the name that it had when it was seen.
    assert "/out/deep/a" in {path for kind, _, path in brief(events, made) if kind == "Generated"}
    assert all(kind != "Used" or how == "rename" for kind, how, _ in brief(events, made))
    assert brief(events, reader) == [
        ("Used", "open", "/out/deep/a"),
        ("Used", "open", "/out/deep/b"),
    ]


def test_the_layer_sees_how_files_are_opened_and_the_container_sees_its_volume(
    start: Callable[..., Node],
) -> None:
    node = start()
    (node.volume / "raw").write_text("raw\n")
    made = node.run(
        "set -e; cat raw > copy; echo more >> raw; echo anew > copy; mkdir d; mv copy d/copy;"
        " mv d e; cat e/copy; ln -s /etc/passwd link; cp /bin/echo run; ./run ok; rm run;"
        ' test "$(stat -f -c %T .)" = fuseblk -o "$(stat -f -c %T .)" = fuse',
        layer=True,
    )
    reader = node.run("cat e/copy raw", layer=True)
    events = node.stop()
    assert brief(events, made)[:4] == [
        ("Used", "open", "/raw"),
        ("Generated", "write", "/copy"),
        ("Generated", "write", "/raw"),
        ("Used", "append", "/raw"),
    ]
    assert ("Generated", "rename", "/e/copy") in brief(events, made)
    assert ("Invalidated", "delete", "/run") in brief(events, made)
    assert brief(events, reader) == [("Used", "open", "/e/copy"), ("Used", "open", "/raw")]
    assert (node.volume / "raw").read_text() == "raw\nmore\n"
    assert digests(events)["/e/copy"] == {f"blake3:{blake3(b'anew%c' % 10).hexdigest()}"}
    assert {e.answer for e in events if isinstance(e, Looked)} == {"fuse"}
    assert {kind for _, kind in looks(events)} == {WATCHED, WATCHED_TO_END}
    assert not [event for event in events if isinstance(event, Gap)]


def test_a_network_file_system_gets_the_layer_or_has_a_gap(
    start: Callable[..., Node], tmp_path: Path
) -> None:
    """Whatever the cluster calls its volume: a driver does not tell what it mounts."""
    node, server = start(), tmp_path / "server"
    server.mkdir()
    (server / "raw").write_text("raw\n")
    with fuse_mount("fuse.juicefs", server, node.volume):
        layered = node.run("cat raw > copy; cat copy", layer=None)
        marked = node.run("cat copy > last", layer=False)
        events = node.stop()
    assert brief(events) == [("Used", "open", "/raw"), ("Generated", "write", "/copy")]
    assert looks(events) == [(layered.uid, WATCHED), (layered.uid, WATCHED_TO_END)]
    gaps = [(e.activity, e.why) for e in events if isinstance(e, Gap)]
    assert gaps == [(marked.uid, "fanotify does not support this file system")]
    assert (server / "last").read_text() == "raw\n"


def test_a_layer_does_not_keep_the_variables_of_the_agent(
    start: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLEW_TOKEN", "clew_secret")
    node = start()
    made = node.container("true", layer=True)
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    processes = [Path("/proc", pid) for one in children for pid in one.read_text().split()]
    (layer,) = [one for one in processes if os.readlink(one / "exe") == str(LAYER)]
    variables = (layer / "environ").read_bytes()
    made.run()
    made.remove()
    wait_until("ended", lambda: not node.witness.watched())
    assert variables == b""


def test_content_is_stored_where_the_policy_says_so(start: Callable[..., Node]) -> None:
    rule = ContentRule(namespaces=("ml",), paths=("*.csv",), max_bytes=5 << 20)
    node = start(Policy(exclude=(), content=(rule,)))
    node.run("echo a > a.csv; echo b > b.txt; head -c 3000000 /dev/zero > large.csv")
    wait_until("hashed", lambda: node.witness.counts["hashed_bytes"] >= 3_000_000)
    events = node.stop()
    stored = {e.version.locator[-9:]: e.stored for e in events if isinstance(e, Content)}
    assert stored == {"v-1/a.csv": True, "v-1/b.txt": False, "large.csv": True}
    with node.spool.open_contents() as store:
        (large,) = {e.digest for e in events if isinstance(e, Content) and e.size == 3_000_000}
        assert b"".join(store.read(large)) == bytes(3_000_000)


def test_a_container_that_is_not_selected_is_not_marked(start: Callable[..., Node]) -> None:
    node = start(Policy(exclude=(Rule(namespaces=("ml",)),)))
    node.run("echo x > x")
    assert brief(node.stop()) == []
    assert node.witness.counts["containers"] == 0


def test_a_container_that_ran_before_is_reported_late(start: Callable[..., Node]) -> None:
    node = start()
    node.close()
    program = shutil.copy("/bin/sh", node.home / "crunch")  # not crun, which is a runtime
    early = NodeContainer(node.pods, node.volume, node.home, program, "-c", "sleep 1; echo x > x")
    runner = threading.Thread(target=early.run)
    runner.start()
    comm = Path(f"/proc/{(early.cgroup / 'cgroup.procs').read_text().split()[0]}/comm")
    wait_until("running", lambda: comm.read_text() == "crunch\n")
    later = start()
    pod = Uid(early.pod.replace("-", ""))
    mount = PlannedMount(VOLUME, os.fsencode(early.point), b"", False)
    container = PlannedContainer(name="main", init=False, image="", mounts=(mount,))
    later.plans[pod] = PlannedPod(pod, "ml", "p", {}, {}, (), {"main": container})
    runner.join()
    early.remove()
    events = [event for event in later.stop() if event.execution == pod]
    (late,) = [event for event in events if isinstance(event, Gap)]
    assert late.activity == early.uid
    assert looks(events) == [(early.uid, UNWATCHED)]
    (made,) = [event for event in events if isinstance(event, Generated)]
    assert made.version.ordinal > time.time() - 3600


def test_a_program_with_mounts_of_its_own_is_watched_no_longer(start: Callable[..., Node]) -> None:
    node = start()
    made = node.container("sh", "-c", "unshare -m sh -c 'echo ready > ready; read line'")
    made.begin()
    wait_until("reported", lambda: node.witness.counts["unwatched"])
    made.end("end")
    made.remove()
    wait_until("ended", lambda: not node.witness.watched())
    events = node.stop()
    assert {kind for _, kind in looks(events)} == {WATCHED, UNWATCHED, WATCHED_TO_END}
    gaps = [(e.activity, e.what, e.locator) for e in events if isinstance(e, Gap)]
    assert gaps == [(made.uid, "accesses through mounts of its own", VOLUME.whole)]


def test_a_container_beyond_the_limits_of_the_kernel_is_a_gap(
    start: Callable[..., Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit counts what all tests of this machine watch, so it is not reached here."""

    def fail() -> EventGroup:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    node = start()
    monkeypatch.setattr(watched_container, "EventGroup", fail)
    made = NodeContainer(node.pods, node.volume, node.home, "sh", "-c", "echo x > x")
    node.plan(made)
    wait_until("given up", lambda: node.witness.counts["missed"])
    monkeypatch.undo()
    made.run()
    made.remove()
    seen = node.run("true")  # the agent goes on
    events = node.stop()
    gaps = [(e.activity, e.why) for e in events if isinstance(e, Gap)]
    assert gaps == [(made.uid, "fanotify: Too many open files")]
    assert looks(events) == [(seen.uid, WATCHED), (seen.uid, WATCHED_TO_END)]


def test_what_ends_the_observer_ends_the_agent(start: Callable[..., Node]) -> None:
    node = start()

    def fail(pod: Uid) -> PlannedPod | None:
        raise MemoryError(pod)

    observer = NodeObserver(ContainerWatch(node.pods), fail, lambda *_: Choice())
    thread = threading.Thread(target=observer.run)
    thread.start()
    made = NodeContainer(node.pods, node.volume, node.home, "true")
    with pytest.raises(MemoryError):
        while True:
            observer.next_batch(60)
    thread.join()
    made.run()
    made.remove()


@pytest.mark.parametrize("outlives", [False, True])
def test_a_container_that_runs_while_the_agent_is_away_counts_as_watched_no_longer(
    start: Callable[..., Node], outlives: bool
) -> None:
    node = start()
    made = node.container("sh", "-c", "read line; echo x > x; read line; echo y > y")
    made.begin()
    node.leave()
    made.send("go")
    wait_until("written", (node.volume / "x").exists)
    if not outlives:
        made.end("end")
        made.remove()
    later = start()
    if outlives:
        later.plan(made)
        wait_until("watched again", lambda: later.witness.counts["containers"])
        made.end("end")
        made.remove()
        wait_until("ended", lambda: not later.witness.watched())
    events = later.stop()  # with those of the first agent
    found = {kind for uid, kind in looks(events) if uid == made.uid}
    assert found == {WATCHED, UNWATCHED}
    gaps = [(e.activity, e.locator) for e in events if isinstance(e, Gap)]
    assert set(gaps) == {(made.uid, VOLUME.whole)}
    written = {path for _, _, path in brief(events, made)}
    assert written == ({"/y"} if outlives else set())


@pytest.mark.parametrize("excluded", [(), (Rule(namespaces=("ml",)),)])
def test_a_container_that_ends_before_its_pod_is_known_is_a_gap_where_it_is_selected(
    start: Callable[..., Node], excluded: tuple[Rule, ...]
) -> None:
    node = start(Policy(exclude=excluded))
    made = NodeContainer(node.pods, node.volume, node.home, "sh", "-c", "echo x > x")
    made.run()
    made.remove()
    node.plan(made)
    events = [event for event in node.stop() if event.execution == made.uid.partition("/")[0]]
    gaps = [(e.activity, e.locator) for e in events if isinstance(e, Gap)]
    assert gaps == ([] if excluded else [(made.uid, VOLUME.whole)])


def test_every_container_is_watched_or_has_a_gap(start: Callable[..., Node]) -> None:
    """Many start and end at once, while the agent hardly gets to run."""
    node = start()
    ended = threading.Event()

    def keep_busy() -> None:
        while not ended.is_set():
            sum(range(1000))

    def run_some() -> list[NodeContainer]:
        found = [NodeContainer(node.pods, node.volume, node.home, "true") for _ in range(4)]
        for made in found:
            node.plan(made)
            made.run()
            made.remove()
        return found

    with ThreadPoolExecutor() as pool:
        busy = [pool.submit(keep_busy) for _ in range(2)]
        running = [pool.submit(run_some) for _ in range(4)]
        started = {made.uid for one in running for made in one.result()}
        ended.set()
        for one in busy:
            one.result()
    events = node.stop()
    whole = {uid for uid, kind in looks(events) if kind == WATCHED_TO_END}
    gaps = {event.activity for event in events if isinstance(event, Gap)}
    assert started == whole | gaps
    assert not whole & gaps


def test_a_container_that_was_gone_at_once_is_a_gap(start: Callable[..., Node]) -> None:
    """Its cgroup is removed before the agent looks at it."""
    node = start()
    made = NodeContainer(node.pods, node.volume, node.home, "true")
    node.plan(made)
    name = "ab" * 32
    watch = ContainerWatch(node.pods)
    list(watch.scan())
    brief_one = made.cgroup.with_name(name)
    brief_one.mkdir()
    brief_one.rmdir()
    uid = f"{made.uid.partition('/')[0]}/{name}"
    assert list(watch.changes()) == [
        ContainerFound(Uid(uid), os.fsencode(brief_one)),
        ContainerGone(Uid(uid)),
    ]
    watch.close()
    made.run()
    made.remove()
    wait_until("missed", lambda: node.witness.counts["missed"])
    gaps = [e.activity for e in node.stop() if isinstance(e, Gap)]
    assert gaps == [uid]


def test_a_container_whose_volumes_cannot_be_watched_has_a_gap(start: Callable[..., Node]) -> None:
    node = start()
    made = NodeContainer(node.pods, node.volume, node.home, "true")
    unseen = UnseenVolume("data", "a part of it is mounted", VOLUME.whole)
    node.plan(made, unseen=(unseen,))
    wait_until("missed", lambda: node.witness.counts["missed"])
    made.run()
    made.remove()
    gaps = [(e.activity, e.why, e.locator) for e in node.stop() if isinstance(e, Gap)]
    assert gaps == [(made.uid, unseen.why, VOLUME.whole)]


def test_a_program_that_starts_while_its_container_is_looked_at_does_not_hide_its_mounts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Between the two steps the runtime mounts the volumes, and the program starts."""
    (tmp_path / "cgroup.procs").write_text(str(os.getpid()))
    later = parse_mounts(b"31 1 8:1 / /data rw - ext4 x rw")
    steps: list[str] = []

    def look(step: str) -> bool:
        steps.append(step)
        return len(steps) > 1

    monkeypatch.setattr(container_discovery, "is_running", lambda _: look("running"))
    monkeypatch.setattr(
        container_discovery, "read_mounts", lambda _: later if look("mounts") else []
    )
    found = read_process(os.fsencode(tmp_path))
    assert found is not None
    assert (found.running, found.mounts) == (False, later)
