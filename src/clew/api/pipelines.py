"""The public interface of `project.pipelines`.

`LocalPipelines` (in `api.local`) and `RemotePipelines` (in `api.remote`) implement it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from clew.api.parameter_types import Say, StrPath, ignore_message

if TYPE_CHECKING:
    from clew.documents.comparisons.differences import RunDiff
    from clew.documents.executions.repeats import RepeatedRun
    from clew.documents.pipelines.runs import LogPart, Run, RunWithCounts, RunWithTasks, Task, Why
    from clew.pipelines.runner.run_types import Change, ClusterOptions


class Pipelines(Protocol):
    """`project.pipelines`. Each document is that of the command of the same name."""

    def run(
        self,
        file: StrPath,
        parameters: Mapping[str, str] | None = None,
        *,
        jobs: int | None = None,
        reuse: bool = True,
        on_host: bool = False,
        platform: StrPath | None = None,
        cluster: ClusterOptions | None = None,
        say: Say = ignore_message,
        watch: Callable[[Change], None] = lambda _: None,
        brief: bool = False,
    ) -> RunWithTasks | RunWithCounts:
        """Run a compiled pipeline (`.yaml`), or the one that a Python file defines, to its end.

        `parameters` are texts, parsed by the types that the pipeline declares. At most `jobs` tasks
        run at a time (default: the number of cores). `reuse` skips tasks whose inputs have not
        changed. `on_host` runs container components as processes of this machine, without their
        images. `platform` is the file that maps secrets, config maps and volumes; by default the
        `pipeline-platform.toml` beside the pipeline. `cluster`: run the tasks as Pods of a
        cluster, with their artifacts in an object store. `say` receives what differs from that,
        `watch` every change of a task. `brief` returns the number of tasks in each state (`counts`)
        in place of the tasks. A failed run raises no error: see `state`.
        """

    def resume(
        self,
        id: str,  # noqa: A002
        *,
        jobs: int | None = None,
        say: Say = ignore_message,
        watch: Callable[[Change], None] = lambda _: None,
        brief: bool = False,
    ) -> RunWithTasks | RunWithCounts:
        """Resume a run that failed, was canceled or was killed; finished tasks do not run again."""

    def cancel(self, id: str) -> RunWithTasks:  # noqa: A002
        """Cancel a run, and wait for its end."""

    def list(self) -> list[Run]:
        """All runs, oldest first, without their tasks."""

    def show(self, id: str) -> RunWithTasks:  # noqa: A002
        """One run with its tasks, by id (`r1`) or uid."""

    def task(self, id: str) -> Task:  # noqa: A002
        """One task, by id (`r1/train`)."""

    def why(self, id: str) -> Why:  # noqa: A002
        """Why a task ran or was reused, fact by fact."""

    def diff(self, a: str, b: str) -> RunDiff:
        """How run `b` differs from run `a`, task by task."""

    def repeat(self, id: str, *, say: Say = ignore_message) -> RepeatedRun:  # noqa: A002
        """Repeat every task of a run in isolation, and compare the outputs."""

    def logs(self, id: str, *, follow: bool = False) -> Iterator[bytes]:  # noqa: A002
        """The output of a task's last attempt, piece by piece: so far, or with `follow` until it
        ends."""

    def read_log(self, id: str, offset: int = 0) -> LogPart:  # noqa: A002
        """The output of a task's last attempt from byte `offset` on, as far as it is known now: at
        most 256 KiB, whether it is complete, and the attempt. The bytes and offsets are those of
        the stored log. When `attempt` changes, begin again at 0."""
