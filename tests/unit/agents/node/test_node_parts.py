"""What the node agent reads of cgroups, mounts and Pods, and the numbers that it keeps."""

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from clew.agents.node.containers.cgroups import container_of_process, find_pods_directory
from clew.agents.node.containers.container_discovery import read_mounts
from clew.agents.node.containers.mount_table import find_container, find_mount, parse_mounts
from clew.agents.node.containers.watch_plan import (
    BoundClaim,
    PlannedPod,
    bound_claim,
    claims_of,
    plan_pod,
    writable_unseen,
)
from clew.agents.node.containers.watched_container import open_mount
from clew.agents.node.kernel.volume_mount import mount_id
from clew.agents.node.layer.layer_records import LayerRecords
from clew.agents.node.version_journal import VersionJournal
from clew.documents.ids import Locator, Uid
from clew.prov.cluster.watch_declarations import UNWATCHED, WATCHED, WATCHED_TO_END
from clew.prov.events import Looked, Used, Version
from clew.witness.volumes.accesses import FileAccess, FileRename

POD = "12345678-1234-1234-1234-123456789abc"
UID = Uid(POD.replace("-", ""))
ID = "ab" * 32


@pytest.mark.parametrize(
    "path",
    [
        f"kubepods/burstable/pod{POD}/{ID}",
        f"clew1/node1/kubepods/pod{POD}/{ID}/nested",
        f"kubepods.slice/x.slice/kubepods-besteffort-pod{POD}.slice/cri-containerd-{ID}.scope",
        f"kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/crio-{ID}.scope",
    ],
)
def test_a_process_is_attributed_by_its_cgroup(path: str) -> None:
    assert container_of_process(f"4:memory:/\n3:pids:/{path}\n") == f"{UID}/{ID}"
    assert container_of_process(f"0::/{path}\n") == f"{UID}/{ID}"


@pytest.mark.parametrize("path", ["", "user.slice", f"kubepods/pod{POD}", f"system/{ID}", "a/b"])
def test_a_process_outside_of_pods_has_no_container(path: str) -> None:
    assert container_of_process(f"0::/{path}\n") is None


def test_the_directory_of_pods_is_that_of_the_agents_own_node(tmp_path: Path) -> None:
    for node in ("node1", "node2"):
        (tmp_path / "pids" / "clew" / node / "kubepods").mkdir(parents=True)
    own = f"3:memory:/clew/node2/kubepods/pod{POD}/{ID}\n"
    assert find_pods_directory(own, root=tmp_path) == tmp_path / "pids/clew/node2/kubepods"
    found = find_pods_directory("0::/\n", root=tmp_path)
    assert found == tmp_path / "pids/clew/node1/kubepods"
    assert find_pods_directory("0::/\n", root=tmp_path / "none") is None


TABLE = rb"""
31 1 8:1 /volumes/pv-1 /data rw,relatime - ext4 /dev/sda1 rw
32 1 8:1 /kubelet/pods/12345678-1234-1234-1234-123456789abc/containers/main/0a1b /l rw - ext4 /d rw
33 31 8:1 /other /data/with\040space ro shared:1 - ext4 /dev/sda1 rw
34 1 0:50 / /run/x/rootfs/early rw - nfs4 server:/export rw
35 31 8:1 /cover /data rw - ext4 /dev/sda1 rw
broken
36 x
"""


def test_a_table_of_mounts_tells_the_container_and_its_volumes() -> None:
    mounts = parse_mounts(TABLE)
    assert find_container(mounts) == (UID, "main")
    assert [m.id for m in mounts] == [31, 32, 33, 34, 35]
    data = find_mount(mounts, b"/data/")
    assert data is not None and data.id == 35
    space = find_mount(mounts, b"/data/with space")
    assert space is not None and space.read_only
    early = find_mount(mounts, b"/early")
    assert early is not None and early.filesystem == "nfs4" and early.network
    assert not data.network
    assert find_mount(mounts, b"/nothing") is None
    assert find_container(mounts[2:]) is None


def pod(**spec: Any) -> dict[str, Any]:
    about = {"uid": POD, "name": "train", "namespace": "ml", "labels": {"a": "b"}}
    return {"metadata": about, "spec": spec, "status": {"podIPs": [{"ip": "10.0.0.1"}]}}


def test_a_plan_has_the_volumes_of_each_container_with_their_locators() -> None:
    found = pod(
        securityContext={"runAsUser": 7},
        volumes=[
            {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "e", "emptyDir": {}},
            {"name": "h", "hostPath": {"path": "/srv/x/"}},
            {"name": "c", "configMap": {"name": "x"}},
            {"name": "t", "ephemeral": {}},
            {"name": "n", "nfs": {"server": "s"}},
        ],
        initContainers=[{"name": "first", "volumeMounts": [{"name": "d", "mountPath": "/in"}]}],
        containers=[
            {
                "name": "main",
                "image": "i:1",
                "volumeMounts": [
                    {"name": "d", "mountPath": "/data", "subPath": "part/", "readOnly": True},
                    {"name": "e", "mountPath": "/tmp/e"},
                    {"name": "h", "mountPath": "/h"},
                    {"name": "c", "mountPath": "/c"},
                    {"name": "t", "mountPath": "/t"},
                    {"name": "n", "mountPath": "/n"},
                ],
            }
        ],
    )
    assert claims_of(found) == ["data", "train-t"]
    plan = plan_pod(found, {"data": BoundClaim("pv-1", UID, 1)}, machine="m1")
    assert plan is not None and plan.uid == UID and plan.addresses == ("10.0.0.1",)
    main, first = plan.containers["main"], plan.containers["first"]
    assert [(m.volume.key, m.point, m.prefix, m.read_only) for m in main.mounts] == [
        ("pvc://ml/data@pv-1", b"/data", b"/part", True),
        (f"emptydir://{UID}/e", b"/tmp/e", b"", False),
        ("file://m1/srv/x", b"/h", b"", False),
    ]
    assert main.user == 7 and main.group is None
    assert sorted(one.name for one in main.unseen) == ["n", "t"]
    assert writable_unseen(main, []) is None and writable_unseen(None, []) is None
    assert writable_unseen(first, []) == {"pvc://ml/data@pv-1"}
    assert writable_unseen(first, first.mounts) == set()
    assert first.init and first.mounts[0].point == b"/in"


def test_a_claim_is_bound_to_a_volume_that_may_belong_to_this_node_alone() -> None:
    claim = {
        "metadata": {"uid": POD, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"volumeName": "pv-1"},
    }
    assert bound_claim({**claim, "spec": {}}, None) is None
    for kind, local in (("nfs", False), ("csi", False), ("hostPath", True), ("local", True)):
        found = bound_claim(claim, {"spec": {kind: {}}})
        assert found == BoundClaim("pv-1", UID, 1_767_225_600 * 10**9, local)


@pytest.mark.parametrize(
    ("kinds", "network"),
    [
        (["nfs4", "cifs", "ceph", "fuse.juicefs", "fuse", "lustre", "virtiofs"], True),
        (["ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuseblk"], False),
    ],
)
def test_the_mounted_file_system_tells_whether_others_write(
    kinds: list[str], network: bool
) -> None:
    for kind in kinds:
        (entry,) = parse_mounts(f"31 1 8:1 / /data rw - {kind} x rw".encode())
        assert entry.network == network, kind


def test_records_of_a_layer_arrive_in_pieces() -> None:
    def record(kind: int, flags: int, path: bytes, target: bytes = b"") -> bytes:
        handle = b"\1\0\0\0hand"
        body = handle + path + target
        sizes = (len(handle), len(path), len(target))
        fields = (kind, flags, 9, 50, 3, 40, 41, 0o100644, *sizes)
        return struct.pack("<IIIIqqqqIIII", 64 + len(body), *fields) + body

    data = record(1, 1, b"/r") + record(1, 2 | 4, b"/w\n\xff") + record(3, 0, b"/a", b"/b")
    records = LayerRecords(Uid("p/c"), "v", b"/part")
    found = [one for i in range(len(data)) for one in records.parse(data[i : i + 1], at=100)]
    read, written, renamed = found
    assert isinstance(read, FileAccess) and isinstance(written, FileAccess)
    assert (read.read, read.written, read.at) == (True, False, 50)
    assert (written.path, written.written, written.kept) == (b"/part/w\n\xff", True, True)
    assert isinstance(renamed, FileRename) and renamed.target == b"/part/b"
    with pytest.raises(ValueError, match="length"):
        list(records.parse(bytes(100), at=1))


@pytest.mark.parametrize(
    ("annotation", "network", "layer"),
    [(None, False, False), (None, True, True), ("fuse", False, True), ("fanotify", True, False)],
)
def test_a_layer_is_for_network_file_systems_and_where_the_pod_asks_for_it(
    annotation: str | None, network: bool, layer: bool
) -> None:
    mounts = [{"name": "d", "mountPath": "/d"}]
    found = pod(
        volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}],
        containers=[{"name": "main", "volumeMounts": mounts}],
    )
    if annotation:
        found["metadata"]["annotations"] = {"clew.dev/file-witness": annotation}
    plan = plan_pod(found, {"data": BoundClaim("pv-1", UID, 1)}, machine="m")
    assert plan is not None
    assert plan.containers["main"].mounts[0].needs_layer(network=network) is layer


def test_the_journal_keeps_the_highest_numbers_over_a_crash_and_forgets_pods(
    tmp_path: Path,
) -> None:
    def used(pod: str, ordinal: int) -> Used:
        version = Version(Locator("pvc://a/b@c/x\ny"), Uid(pod), ordinal)
        return Used(execution=Uid(pod), n=0, at=1, activity=Uid(pod), version=version)

    def look(kind: str, container: str) -> Looked:
        own = {"execution": Uid(container[0]), "n": 0, "at": 1, "activity": Uid(container)}
        return Looked(**own, kind=kind, locator=whole)  # type: ignore[arg-type]

    whole = Locator("pvc://a/b")
    path = tmp_path / "journal"
    journal = VersionJournal(path)
    journal.add([Uid("a"), Uid("quiet")], [used("a", 3), used("a", 2), used("b", 1)])
    journal.add([], [look(WATCHED, "a/1"), look(WATCHED, "a/2"), look(WATCHED, "b/3")])
    journal.add([], [look(WATCHED_TO_END, "a/1"), look(UNWATCHED, "a/4")])
    journal.close()
    with open(path, "ab") as file:
        file.write(b'["a","pvc://a/b@c/x\\ny",9')  # cut off
    journal = VersionJournal(path)
    assert journal.numbers(Uid("a"))[Locator("pvc://a/b@c/x\ny")] == 3
    assert journal.pods() == {"a", "b", "quiet"}
    assert journal.watched() == [("a/2", whole), ("b/3", whole)]
    journal.compact({Uid("a")})
    journal.add([], [used("a", 4), look(UNWATCHED, "b/3")])
    journal.close()
    journal = VersionJournal(path)
    assert journal.watched() == [("a/2", whole)]
    assert journal.pods() == {"a"}
    assert journal.numbers(Uid("a"))[Locator("pvc://a/b@c/x\ny")] == 4
    journal.close()


@pytest.mark.parametrize("before", [b"/run/x/rootfs/proc", b"/usr"])
def test_a_mount_is_found_where_it_is_after_the_runtime_changed_the_root(before: bytes) -> None:
    """At the path that it had, there is nothing, or what it was mounted on."""
    (entry,) = (one for one in read_mounts(os.getpid()) if one.point == b"/proc")
    opened = open_mount(os.getpid(), entry._replace(point=before))
    try:
        assert mount_id(opened) == entry.id
    finally:
        os.close(opened)
    with pytest.raises(FileNotFoundError):  # as while the root changes
        open_mount(os.getpid(), entry._replace(point=before, id=0))


def test_the_ids_of_a_pod_tell_its_sandbox_once_all_containers_have_started() -> None:
    spec = {"initContainers": [{"name": "first"}], "containers": [{"name": "main"}]}
    first = {"name": "first", "containerID": f"containerd://{'01' * 32}"}
    main = {
        "name": "main",
        "restartCount": 1,
        "containerID": f"containerd://{'02' * 32}",
        "lastState": {"terminated": {"containerID": f"containerd://{'03' * 32}"}},
    }

    def plan(*statuses: dict[str, Any]) -> PlannedPod:
        made = {
            "metadata": {"uid": POD, "name": "p", "namespace": "ml"},
            "spec": spec,
            "status": {"initContainerStatuses": [first], "containerStatuses": [*statuses]},
        }
        found = plan_pod(made, {}, machine="m")
        assert found is not None
        return found

    assert plan(main).names == {"01" * 32: "first", "02" * 32: "main", "03" * 32: "main"}
    assert plan(main).has_all_names
    assert not plan().has_all_names, "one has not started"
    assert not plan(main | {"restartCount": 2}).has_all_names, "an earlier id is gone"
