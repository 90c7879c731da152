"""What runs for a resource now, as the supervisor knows it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from clew.kube.controller.status_reasons import Reason
from clew.workloads.local.processes.child_process import ChildProcess
from clew.workloads.local.processes.process_status import STARTING
from clew.workloads.local.processes.start_preparation import Start


class Address(NamedTuple):
    """The address of a process, and the access token that it expects."""

    port: int
    token: str


@dataclass
class Runtime:
    """The process of one resource."""

    uid: str
    process: ChildProcess | None = None
    start: Start | None = None
    digest: str = ""
    """The digest of the plan that it was started with."""
    port: int | None = None
    """Set when it is ready."""
    began: float = 0.0
    terminate_at: float | None = None
    killed: bool = False
    restarts: int = 0
    crashes: int = 0
    """Consecutive crashes."""
    retry_at: float = 0.0
    reason: Reason = field(default=STARTING)
