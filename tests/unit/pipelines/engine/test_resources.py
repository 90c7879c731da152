"""Quantities, requests, and which task starts next."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.pipelines.engine.resources import (
    MAX_OVERTAKES,
    MIN_CORES,
    Capacity,
    ResourceQueue,
    ResourceRequest,
    describe_shortage,
    fits,
    resolve_request,
)
from clew.pipelines.spec.document_part import InvalidPipeline, Part
from clew.pipelines.spec.ir import Resources
from clew.pipelines.spec.resources import parse_resources
from clew.pipelines.tasks.machine_resources import measure_capacity

GIB = 2**30


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ({}, Resources()),
        (
            {"cpuLimit": 2.0, "memoryLimit": 3.0},
            Resources(2.0, 3e9, limits={"cpu": 2.0, "memory": 3e9}),
        ),
        (
            {"cpuLimit": 2.0, "resourceCpuLimit": "500m"},
            Resources("500m", limits={"cpu": "500m"}),
        ),
        (
            {"cpuLimit": 4.0, "cpuRequest": 1.0},
            Resources(1.0, requests={"cpu": 1.0}, limits={"cpu": 4.0}),
        ),
        (
            {"resourceCpuRequest": "1", "cpuRequest": 3.0, "cpuLimit": 5.0},
            Resources("1", requests={"cpu": "1"}, limits={"cpu": 5.0}),
        ),
        (
            {"resourceMemoryLimit": "2Gi", "memoryLimit": 2.1},
            Resources(None, "2Gi", limits={"memory": "2Gi"}),
        ),
        (
            {"accelerator": {"type": "T4", "count": "2"}},
            Resources(accelerators="2", accelerator_type="T4"),
        ),
        (
            {"accelerator": {"resourceType": "a", "resourceCount": "1", "count": "3"}},
            Resources(accelerators="1", accelerator_type="a"),
        ),
        (
            {"accelerator": {"resourceType": "nvidia.com/gpu"}},
            Resources(accelerators=1, accelerator_type="nvidia.com/gpu"),
        ),
        (
            {"resourceCpuLimit": "{{$.inputs.parameters['cpu']}}"},
            Resources(
                "{{$.inputs.parameters['cpu']}}",
                limits={"cpu": "{{$.inputs.parameters['cpu']}}"},
            ),
        ),
    ],
)
def test_parse_resources(written: dict[str, Any], found: Resources) -> None:
    assert parse_resources(Part(written, "container.resources")) == found


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ({"resourceCpuLimit": "many"}, "container.resources.resourceCpuLimit"),
        ({"accelerator": {"count": "x"}}, "container.resources.accelerator.count"),
        ({"disk": 1}, "container.resources.disk"),
        ({"resourceCpuLimit": "{{$.strange}}"}, "container.resources.resourceCpuLimit"),
    ],
)
def test_what_is_refused(written: dict[str, Any], place: str) -> None:
    with pytest.raises(InvalidPipeline, match=place):
        parse_resources(Part(written, "container.resources"))


def test_resolve_request() -> None:
    values = {"p": "250m", "negative": "-3"}
    asked = Resources("p", "2Gi", 1)
    assert resolve_request(asked, lambda value: values.get(value, value)) == ResourceRequest(
        0.25, 2 * GIB, 1
    )
    assert resolve_request(Resources(), lambda value: value) == ResourceRequest(1.0)
    assert resolve_request(
        Resources("negative", "negative"), lambda value: values[value]
    ) == ResourceRequest(MIN_CORES)


def test_describe_shortage() -> None:
    machine = Capacity(2, 8 * GIB, 1)
    assert describe_shortage(ResourceRequest(2, 8 * GIB, 1), machine) is None
    assert describe_shortage(ResourceRequest(4), machine) == "4 cores of 2"
    assert describe_shortage(ResourceRequest(1, 16 * GIB, 2), machine) == (
        "16 GiB of memory of 8, 2 accelerators of 1"
    )


def test_fits() -> None:
    machine = Capacity(2, 8 * GIB, 1)
    assert fits(ResourceRequest(1), [ResourceRequest(1)], machine)
    assert not fits(ResourceRequest(1), [ResourceRequest(1), ResourceRequest(0.5)], machine)
    assert fits(ResourceRequest(0.1), [ResourceRequest(0.1)] * 19, machine)
    assert not fits(ResourceRequest(0.1), [ResourceRequest(0.1)] * 20, machine)
    assert not fits(ResourceRequest(0.1, 5 * GIB), [ResourceRequest(0.1, 4 * GIB)], machine)
    assert not fits(ResourceRequest(0.1, gpus=1), [ResourceRequest(0.1, gpus=1)], machine)
    assert fits(ResourceRequest(exclusive=True), [], machine)
    assert not fits(ResourceRequest(exclusive=True), [ResourceRequest(0.1)], machine)
    assert not fits(ResourceRequest(0.1), [ResourceRequest(exclusive=True)], machine)
    assert not fits(ResourceRequest(0.1), [ResourceRequest(0.1)], Capacity(8, 8 * GIB, max_tasks=1))


def test_one_mount_path_has_one_target_at_a_time() -> None:
    here, there = (
        ResourceRequest(0.1, mount_points=frozenset({("/data", to)})) for to in ("/here", "/there")
    )
    assert fits(here, [here], Capacity(2, GIB))
    assert not fits(here, [there], Capacity(2, GIB))


def test_small_requests_overtake_only_so_often() -> None:
    waiting: ResourceQueue[str] = ResourceQueue(Capacity(2, GIB))
    busy = [ResourceRequest(1)]
    waiting.add("big", ResourceRequest(2))
    for number in range(MAX_OVERTAKES + 5):
        waiting.add(f"small {number}", ResourceRequest(1))
    begun = []
    while (found := waiting.next(busy)) is not None:
        begun.append(found[0])  # it ends at once
    assert begun == [f"small {number}" for number in range(MAX_OVERTAKES)]
    assert waiting.next([]) == ("big", ResourceRequest(2))
    assert waiting.next([ResourceRequest(2)]) is None
    assert waiting.next([]) == (f"small {MAX_OVERTAKES}", ResourceRequest(1))


NEEDS = st.builds(
    ResourceRequest,
    cores=st.sampled_from([0.1, 0.5, 1.0, 2.0]),
    memory=st.sampled_from([0.0, GIB, 2.0 * GIB]),
    gpus=st.sampled_from([0.0, 0.0, 1.0]),
    exclusive=st.sampled_from([False, False, False, True]),
)


@given(st.lists(NEEDS, max_size=60), st.randoms(use_true_random=False))
def test_all_tasks_run_within_the_capacity(needs: list[ResourceRequest], random: Any) -> None:
    """However tasks end, all of them run, never more at once than fit."""
    machine = Capacity(2, 2 * GIB, 1)
    waiting: ResourceQueue[int] = ResourceQueue(machine)
    for number, one in enumerate(needs):
        waiting.add(number, one)
    begun: list[int] = []
    busy: list[ResourceRequest] = []
    while busy or len(begun) < len(needs):
        while (found := waiting.next(busy)) is not None:
            begun.append(found[0])
            busy.append(found[1])
            assert len(busy) == 1 or not any(one.exclusive for one in busy)
            assert sum(one.cores for one in busy) <= 2.0001
            assert sum(one.memory for one in busy) <= 2 * GIB
            assert sum(one.gpus for one in busy) <= 1
        assert busy
        busy.pop(random.randrange(len(busy)))
    assert sorted(begun) == list(range(len(needs)))


@pytest.mark.parametrize(
    ("files", "memory"),
    [
        ({}, 8 * GIB),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 8 * GIB),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": f"{GIB}\n"}, GIB),
        (
            {
                "proc/self/cgroup": "5:memory:/job\n3:cpu,cpuacct:/job\n",
                "sys/fs/cgroup/memory/job/memory.limit_in_bytes": f"{2 * GIB}\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            2 * GIB,
        ),
    ],
)
def test_capacity_of_a_machine_with_cgroup_limits(
    tmp_path: Path, files: dict[str, str], memory: float
) -> None:
    for name, words in {"proc/meminfo": f"MemTotal: {8 * 2**20} kB\n", **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(words)
    found = measure_capacity(None, tmp_path)
    assert (found.memory, found.gpus, found.max_tasks) == (memory, 0, None)
    assert measure_capacity(1000, tmp_path).cores == 1000


def test_capacity_of_this_machine() -> None:
    assert measure_capacity(None).memory > 0
