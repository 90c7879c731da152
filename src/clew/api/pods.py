"""The public interface of `project.pods`: what Pods of a cluster made, made again."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from clew.api.parameter_types import Say, ignore_message

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from clew.api.reproduction.record_reader import RecordReader
    from clew.documents.lineage.cluster_state import ClusterState
    from clew.documents.lineage.reproduction import Reproduction

DEADLINE_SECONDS = 3600
"""How long a Pod may run."""


class Pods:
    """`project.pods`."""

    def __init__(
        self,
        open_record: Callable[[], AbstractContextManager[RecordReader]],
        secrets: Callable[[], Mapping[str, str]],
        s3: Mapping[str, str],
        load_state: Callable[[datetime | None, str | None], ClusterState],
    ) -> None:
        """`secrets`: those that were given; `s3`: how this machine reaches S3; `load_state`: what
        existed at a time in a namespace."""
        self._open_record = open_record
        self._secrets = secrets
        self._s3 = s3
        self._load_state = load_state

    def state(self, *, as_of: datetime | None = None, namespace: str | None = None) -> ClusterState:
        """What existed in the cluster at a time, by default now: Pods, claims, Services and other
        controllers, ConfigMaps, Secrets; of all namespaces, or of one."""
        return self._load_state(as_of, namespace)

    def reproduce(
        self,
        target: str,
        *,
        as_of: datetime | None = None,
        dry_run: bool = False,
        here: bool = False,
        namespace: str | None = None,
        network: bool = False,
        deadline: int = DEADLINE_SECONDS,
        helper_image: str | None = None,
        say: Say = ignore_message,
    ) -> Reproduction:
        """Run the fewest Pods that made `target` again, and compare what they leave.

        `target` is a file on a volume, an object or a Pod, `as_of` a time at which it is meant. The
        Pods run in a namespace that is made and removed for it, or in `namespace`; with `here`, in
        containers of this machine. `network` lets them use the network. They get no Secret: values
        are given by name (`give_secrets`). `deadline` is in seconds for each Pod. `helper_image`
        has Clew, for the Pod that writes and reads files on volumes.
        """
        from clew.api.reproduction.peer_checks import check_peers
        from clew.api.reproduction.plan_report import add_doubts, plan_reproduction
        from clew.api.reproduction.preparation import RunOptions

        with self._open_record() as record:
            planned = plan_reproduction(record, target, as_of=as_of)
            stages = planned.stages.stages
            options = RunOptions(self._secrets(), network=network, deadline=deadline)
            if dry_run or not stages:
                return add_doubts(planned.document, check_peers(stages, options))
            if here:
                from clew.api.reproduction.local_run import reproduce_here

                return reproduce_here(record, planned, options, s3=self._s3, say=say)
            from clew.api.reproduction.cluster_run import reproduce_on_cluster
            from clew.kube.scratch.scratch_client import ScratchClient

            with ScratchClient() as client:
                return reproduce_on_cluster(
                    record,
                    planned,
                    options,
                    client=client,
                    namespace=namespace,
                    image=helper_image,
                    s3=self._s3,
                    say=say,
                )
