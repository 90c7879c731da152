"""Training jobs and their Pods, as Kubernetes writes them."""

from datetime import timedelta
from typing import Any

from tests.unit.kube.sample_resources import NOW

from clew.kube.controller.model import child_of
from clew.kube.controller.options import Options
from clew.kube.objects import Json, format_time
from clew.kube.training.job_spec import FRAMEWORKS, ReplicaId, parse_job
from clew.kube.training.lifecycle import decide
from clew.kube.training.manifests import make_pod, make_service
from clew.kube.training.model import JobDecision, JobState

STARTED = format_time(NOW)


def replicas(count: int | None = None, container: str = "tensorflow", **more: Any) -> Json:
    pod = {"containers": [{"name": container, "image": "train:1", **more.pop("with_", {})}]}
    pod |= more.pop("pod", {})
    made: Json = {"template": {"spec": pod}, **more}
    return made if count is None else {"replicas": count, **made}


def job(kind: str, types: Json, status: Json | None = None, **spec: Any) -> Json:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {
            "name": "mnist",
            "namespace": "me",
            "uid": "uid-mnist",
            "creationTimestamp": STARTED,
        },
        "spec": {FRAMEWORKS[kind].replicas_field: types, **spec},
        **({"status": status} if status is not None else {}),
    }


def tfjob(status: Json | None = None, policy: Json | None = None, **types: Any) -> Json:
    """`Worker=2` and the like; a document instead of a number is taken as it is."""
    made = {name: replicas(n) if isinstance(n, int) else n for name, n in types.items()}
    return job("TFJob", made, status, runPolicy=policy or {})


def pytorchjob(status: Json | None = None, policy: Json | None = None, **types: Any) -> Json:
    made = {name: replicas(n, "pytorch") if isinstance(n, int) else n for name, n in types.items()}
    return job("PyTorchJob", made, status, runPolicy=policy or {})


def pod(of: Json, type_: str, number: int, phase: str = "Running", **more: Any) -> Json:
    """The Pod of a replica; `exit` is the status of its main container, `again` how often the node
    started it again."""
    made = make_pod(parse_job(of), ReplicaId(type_, number), Options())
    made["metadata"] |= {"uid": more.pop("uid", f"{type_}-{number}"), "creationTimestamp": STARTED}
    if more.pop("deleting", False):
        made["metadata"]["deletionTimestamp"] = STARTED
    code, again, after = more.pop("exit", None), more.pop("again", 0), more.pop("after", 0)
    ended = {"exitCode": code, "finishedAt": format_time(NOW + timedelta(seconds=after))}
    state = {"running": {}} if code is None else {"terminated": {**ended, **more.pop("end", {})}}
    container = {
        "name": FRAMEWORKS[of["kind"]].container,
        "restartCount": again,
        "state": more.pop("state", state),
    }
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
    made["status"] = {
        "phase": phase,
        "conditions": [ready],
        "containerStatuses": [container],
        **more,
    }
    return made


def decide_for(
    of: Json, *pods: Json, after: float = 0, options: Options | None = None
) -> JobDecision:
    """`after`: so many seconds after the job started. All Services are there."""
    found = parse_job(of)
    services = [
        make_service(found, ReplicaId(type_, number)) for type_, number in found.list_replicas()
    ]
    uids = [{**s["metadata"], "uid": f"service-{s['metadata']['name']}"} for s in services]
    children = [child_of({**s, "metadata": m}) for s, m in zip(services, uids, strict=True)]
    state = JobState(
        now=NOW + timedelta(seconds=after),
        pods=pods,
        children={(each.kind, each.name): each for each in children},
    )
    return decide(of, state, options or Options())


def next_job(of: Json, decision: JobDecision) -> Json:
    """The job after its status was written."""
    return {**of, "status": decision.status}


def states(decision: JobDecision) -> dict[str, str]:
    """The status of each condition of upstream."""
    found = decision.status["conditions"]
    return {each["type"]: each["status"] for each in found if each["type"] != "Ready"}


def reason(decision: JobDecision) -> tuple[str, str]:
    ready = decision.status["conditions"][0]
    assert ready["type"] == "Ready"
    return ready["reason"], ready.get("message", "")


def names(found: Any) -> list[str]:
    return [each["metadata"]["name"] if isinstance(each, dict) else each.name for each in found]
