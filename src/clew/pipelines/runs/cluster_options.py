"""Where on a cluster the tasks of a run run, from options and settings."""

from collections.abc import Sequence

from clew.errors import UsageError
from clew.pipelines.pods.artifact_store import split_url
from clew.pipelines.runner.run_types import ClusterOptions
from clew.settings import Settings

_IMAGE = "docker.io/clew/clew"


def choose_cluster(
    settings: Settings, version: str, *, namespace: str | None = None, artifacts: str | None = None
) -> ClusterOptions:
    """`version`: of Clew; `namespace`: by default that of the kubeconfig, or of the surrounding
    Pod."""
    url = artifacts or settings.artifacts
    if url is None:
        raise UsageError(
            "tasks on a cluster need a bucket for their artifacts",
            hint="--artifacts s3://BUCKET/PREFIX, or CLEW_ARTIFACTS",
        )
    split_url(url)
    return ClusterOptions(
        namespace=namespace or _default_namespace(),
        artifacts=url.rstrip("/"),
        image=settings.image or f"{_IMAGE}:{version}",
        scheduler=settings.scheduler,
        trace=settings.trace_pods,
    )


def choose_for_server(
    settings: Settings, version: str, namespaces: Sequence[str]
) -> ClusterOptions | None:
    """Where the tasks of a server's runs run; None: in the server, for lack of a bucket.
    `namespaces`: those that it uses, by name or pattern."""
    if settings.artifacts is None:
        return None
    single = namespaces[0] if len(namespaces) == 1 and "*" not in namespaces[0] else None
    return choose_cluster(settings, version, namespace=single)


def _default_namespace() -> str:
    from clew.kube.backend.rest_client import RestClient

    client = RestClient()
    try:
        return client.namespace
    finally:
        client.close()
