"""What is idle is stopped, what is used is not; with real processes."""

from datetime import UTC, datetime, timedelta

import httpx2
from tests.unit.workloads.local.resources import key, notebook, viewer, volume
from tests.wait import wait_until

from clew.kube.controller.model import is_stopped
from clew.kube.objects import Key, annotations_of, format_time
from clew.kube.workload_tokens import HEADER
from clew.project_directory import ProjectDirectory
from clew.workloads.annotations import IDLE_MINUTES, LAST_ACTIVITY, OTHER_LAST_ACTIVITY
from clew.workloads.local.culler import Culler
from clew.workloads.local.local_backend import LocalBackend

VIEWER, NOTEBOOK = key(viewer()), key(notebook())
LONG_AGO = format_time(datetime.now(UTC) - timedelta(days=2))


def test_the_limit_of_the_project_holds_for_the_next_start(directory: ProjectDirectory) -> None:
    def limit(idle_minutes: float | None = None) -> float | None:
        backend = LocalBackend(directory, idle_minutes=idle_minutes)
        found = backend.features().culling.idle_minutes
        backend.set_idle_minutes(30)
        backend.close()
        return found

    assert (limit(), limit(), limit(5), limit()) == (None, 30, 5, 30)
    (directory.path / "workloads" / "idle-limit.json").write_text('{"idle_minutes": "x"}')
    assert limit() is None


def test_what_is_idle_is_stopped_and_what_is_used_is_not(directory: ProjectDirectory) -> None:
    traffic: dict[Key, datetime] = {}
    backend = LocalBackend(directory, idle_minutes=60)
    culler: Culler = backend._culler
    culler._traffic = lambda: traffic
    backend._supervisor.start()
    try:
        backend.create(volume())
        for made in (viewer(), viewer("never"), viewer("used"), notebook()):
            backend.create(made)
        never, used = key(viewer("never")), key(viewer("used"))
        for one in (VIEWER, never, used, NOTEBOOK):
            wait_until(f"{one.name} is ready", lambda one=one: backend.address(one))
        culler.check_all()
        assert not any(is_stopped(backend.get(one)) for one in (VIEWER, never, used, NOTEBOOK))

        # A kernel that starts is busy.
        address = backend.address(NOTEBOOK)
        assert address is not None
        base = f"http://127.0.0.1:{address.port}/notebook/local/first/api"
        headers = {HEADER: address.token, "X-XSRFToken": "x"}
        with httpx2.Client(headers=headers, cookies={"_xsrf": "x"}, timeout=60) as client:
            client.post(f"{base}/kernels").raise_for_status()

        def age(one: Key) -> None:
            """As if it was started, and used last, two days ago."""
            note = LAST_ACTIVITY if one.kind == "Notebook" else OTHER_LAST_ACTIVITY
            backend.merge_patch(one, {"metadata": {"annotations": {note: LONG_AGO}}})
            status = backend.get(one)["status"]
            conditions = [{**status["conditions"][0], "lastTransitionTime": LONG_AGO}]
            uid = backend.get(one)["metadata"]["uid"]
            backend._files.write_status(one, uid, {**status, "conditions": conditions})

        def is_culled() -> bool:
            """A round of the supervisor may write the younger status that it read before."""
            for one in (VIEWER, never, used, NOTEBOOK):
                age(one)
            culler.check_all()
            return is_stopped(backend.get(VIEWER))

        backend.merge_patch(never, {"metadata": {"annotations": {IDLE_MINUTES: "never"}}})
        traffic[used] = datetime.now(UTC)
        wait_until("the idle one is stopped", is_culled)
        assert not any(is_stopped(backend.get(one)) for one in (never, used, NOTEBOOK))
        assert annotations_of(backend.get(NOTEBOOK))[LAST_ACTIVITY] > LONG_AGO
        wait_until("its end", lambda: backend.pods_of(VIEWER) == [])
        reasons = [
            event["reason"]
            for event in backend.list("Event", "local")
            if event["involvedObject"]["name"] == "files"
        ]
        assert "Culled" in reasons
    finally:
        backend.close()


def test_nothing_is_stopped_without_a_limit(directory: ProjectDirectory) -> None:
    backend = LocalBackend(directory)
    backend.start()
    try:
        backend.create(volume())
        backend.create(viewer())
        wait_until("it is ready", lambda: backend.address(VIEWER))
        backend.merge_patch(VIEWER, {"metadata": {"annotations": {OTHER_LAST_ACTIVITY: LONG_AGO}}})
        backend._culler.check_all()
        assert not is_stopped(backend.get(VIEWER))
    finally:
        backend.close()
