"""Decides which tasks start, are skipped, retried or finished, from plain state and without IO.

`begin`, `task_ended` and `retry_group` take what happened and return instructions: start this
task, or this task has finished. The caller decides how many tasks run at once, and where.

The work of each call is proportional to what it changes: a finished task only touches the tasks
that depend on it.
"""

from collections import deque
from collections.abc import Mapping

from msgspec import Struct, field

from clew.pipelines.engine.input_resolution import (
    BadInput,
    bind_iteration,
    fill_placeholders,
    find_producers,
    import_artifact,
    list_loop_items,
    resolve_inputs,
    select_declared,
)
from clew.pipelines.engine.run_state import Node, Scope, collect_outputs, join_path
from clew.pipelines.spec.conditions import CannotCompare
from clew.pipelines.spec.ir import Dag, Importer, Pipeline
from clew.pipelines.spec.values import Values

READY_LIMIT = 256
"""Loops begin no iteration while this many tasks wait or run. It is more than run at once, so that
a task that fits is found, and keeps the memory of a long loop constant."""


class StartTask(Struct, frozen=True):
    """Start this task, `wait` seconds from now if it failed before. For an inner pipeline: call
    `retry_group` after that time."""

    node: Node
    attempt: int
    wait: float = 0.0


class TaskFinished(Struct, frozen=True):
    """This task reached its final state, `node.state`."""

    node: Node
    why: str | None = None
    """Why it did not run."""


Instruction = StartTask | TaskFinished


class TaskResult(Struct, frozen=True):
    """How an attempt of a task ended."""

    error: str | None = None
    outputs: Values = field(default_factory=Values)


class Engine:
    """One run of one pipeline. A group is a task whose component is an inner pipeline or a loop."""

    def __init__(
        self,
        pipeline: Pipeline,
        inputs: Values,
        facts: Mapping[str, str] | None = None,
        *,
        ready_limit: int = READY_LIMIT,
    ) -> None:
        assert isinstance(pipeline.root.body, Dag)
        self._pipeline = pipeline
        self._facts = facts or {}
        self._ready_limit = ready_limit
        self._first_attempts = 0  # tasks that wait for their first attempt, or run it
        self._loops: dict[int, dict[str, Node]] = {}  # those that may begin an iteration, by depth
        self._scopes: dict[str, Scope] = {}  # the scope of each task, by the task's path
        self._running: dict[str, Node] = {}
        self._failed_groups: dict[str, Node] = {}  # groups that wait to be retried
        self._unblocked: deque[Node] = deque()
        self._instructions: list[Instruction] = []
        self._root = self._create_scope("", pipeline.root.body, inputs, None)

    @property
    def done(self) -> bool:
        return self._root.closed

    @property
    def failed(self) -> Node | None:
        return self._root.failed

    @property
    def outputs(self) -> Values:
        return self._root.outputs()

    def begin(self) -> list[Instruction]:
        self._open(self._root)
        return self._advance()

    def task_ended(self, path: str, result: TaskResult) -> list[Instruction]:
        """Take the result of a task that was started."""
        node = self._running.pop(path)
        self._first_attempts -= node.attempts == 1
        node.error = result.error
        if result.error is None:
            node.outputs = result.outputs
            self._finish_task(node, "succeeded")
        elif node.attempts <= node.task.retry.max_retries:
            self._start_attempt(node, wait=node.task.retry.delay_after(node.attempts))
        else:
            self._finish_task(node, "failed")
        return self._advance()

    def retry_group(self, path: str) -> list[Instruction]:
        """Start a failed group again, after its backoff."""
        node = self._failed_groups.pop(path)
        self._start(node, node.inputs)
        return self._advance()

    def cancel(self) -> list[TaskFinished]:
        """Start nothing more; the running tasks are canceled."""
        canceled = list(self._running.values())
        self._running.clear()
        for node in canceled:
            node.state = "canceled"
        return [TaskFinished(node, "the run was canceled") for node in canceled]

    def _advance(self) -> list[Instruction]:
        while self._unblocked or self._begin_iteration():
            if self._unblocked:
                self._decide(self._unblocked.popleft())
        instructions, self._instructions = self._instructions, []
        return instructions

    def _decide(self, node: Node) -> None:
        """Start or skip a task whose dependencies have all finished."""
        scope = self._scopes[node.path]
        if not node.task.run_always:
            for name in sorted(node.task.after):
                state = scope.nodes[name].state
                if state != "succeeded":
                    verb = "failed" if state == "failed" else "was skipped"
                    self._finish_task(node, "skipped", why=f"{name} {verb}")
                    return
        try:
            inputs = resolve_inputs(scope, node, self._facts)
            condition = node.task.condition
            if condition is not None and not condition.holds(
                inputs.parameters,
                lambda constant: fill_placeholders(constant, inputs, node, self._facts),
            ):
                why = f"the condition does not hold: {condition.text}"
                self._finish_task(node, "skipped", why=why)
                return
            self._start(node, inputs)
        except (BadInput, CannotCompare) as error:
            node.error = str(error)
            self._finish_task(node, "failed", why=str(error))

    def _start(self, node: Node, inputs: Values) -> None:
        body, loop = node.component.body, node.task.loop
        if isinstance(body, Importer) and not body.to_workspace:
            node.inputs = select_declared(node, inputs)
            node.outputs = import_artifact(node, inputs, self._facts)
            self._finish_task(node, "succeeded")
        elif not isinstance(body, Dag):
            node.inputs, node.named_inputs = select_declared(node, inputs), inputs
            node.producers = frozenset(find_producers(self._scopes, node))
            self._start_attempt(node)
        elif loop is None:
            node.inputs = inputs
            node.state, node.scopes = "running", {}
            self._enter(node, body, node.path, select_declared(node, inputs))
        else:
            node.inputs, node.shared_inputs = inputs, select_declared(node, inputs)
            node.state, node.scopes, node.iterations = "running", {}, 0
            items = list_loop_items(node, loop, node.shared_inputs, inputs, self._facts)
            node.pending_items = items[::-1]
            self._update_loop(node)
            if not items:
                self._finish_group(node)

    # -- groups

    def _begin_iteration(self) -> bool:
        """Begin one iteration, of an innermost loop, so that begun iterations finish first."""
        if self._first_attempts >= self._ready_limit or not self._loops:
            return False
        node = next(iter(self._loops[max(self._loops)].values()))
        loop, body = node.task.loop, node.component.body
        assert loop is not None
        assert isinstance(body, Dag)
        inputs = bind_iteration(node, loop, node.shared_inputs, node.pending_items.pop())
        path = join_path(node.path, str(node.iterations))
        node.iterations += 1
        self._enter(node, body, path, inputs)
        return True

    def _update_loop(self, node: Node) -> None:
        """Keep `_loops` true after a change of `node`."""
        if node.may_begin_iteration:
            self._loops.setdefault(node.depth, {})[node.path] = node
        elif (loops := self._loops.get(node.depth)) is not None:
            loops.pop(node.path, None)
            if not loops:
                del self._loops[node.depth]

    def _enter(self, node: Node, body: Dag, path: str, inputs: Values) -> None:
        node.open_scopes += 1
        self._update_loop(node)
        node.scopes[path] = self._create_scope(path, body, inputs, node)
        self._open(node.scopes[path])

    def _create_scope(self, path: str, dag: Dag, inputs: Values, owner: Node | None) -> Scope:
        components = self._pipeline.components
        repeatable = owner is not None and (owner.repeatable or owner.task.retry.max_retries > 0)
        nodes = {
            name: Node(
                task,
                components[task.component],
                join_path(path, name),
                repeatable=repeatable,
                blockers=len(task.after),
            )
            for name, task in dag.tasks.items()
        }
        return Scope(path, dag, inputs, nodes, owner)

    def _open(self, scope: Scope) -> None:
        for node in scope.nodes.values():
            self._scopes[node.path] = scope
            if not node.blockers:
                self._unblocked.append(node)
        if not scope.nodes:
            self._close(scope)

    def _close(self, scope: Scope) -> None:
        """Every task of the scope has finished."""
        scope.closed, scope.inputs = True, Values()
        for inner in scope.nodes.values():
            del self._scopes[inner.path]
        if (node := scope.owner) is None:
            return
        node.open_scopes -= 1
        self._update_loop(node)
        if node.task.loop is not None and not scope.dag.has_outputs and scope.failed is None:
            del node.scopes[scope.path]  # nothing will be read from this iteration
        if not node.open_scopes and not node.pending_items:
            self._finish_group(node)

    def _finish_group(self, node: Node) -> None:
        failed = next((bad for scope in node.scopes.values() if (bad := scope.failed)), None)
        if failed is None:
            body = node.component.body
            assert isinstance(body, Dag)
            looped, scopes = node.task.loop is not None, node.scopes.values()
            node.outputs = collect_outputs(scopes, body) if looped else next(iter(scopes)).outputs()
            node.state = "succeeded"
        else:
            node.error = f"{failed.path} failed: {failed.error}"
            node.attempts += 1
            if node.attempts <= node.task.retry.max_retries:
                self._failed_groups[node.path] = node
                wait = node.task.retry.delay_after(node.attempts)
                self._instructions.append(StartTask(node, node.attempts + 1, wait))
                return
            node.state = "failed"
        self._unblock_dependents(node)

    # -- one task

    def _start_attempt(self, node: Node, wait: float = 0.0) -> None:
        node.state = "running"
        node.attempts += 1
        self._first_attempts += node.attempts == 1
        self._running[node.path] = node
        self._instructions.append(StartTask(node, node.attempts, wait))

    def _finish_task(self, node: Node, state: str, why: str | None = None) -> None:
        node.state = state
        self._instructions.append(TaskFinished(node, why))
        self._unblock_dependents(node)

    def _unblock_dependents(self, node: Node) -> None:
        scope = self._scopes[node.path]
        for name in scope.dag.dependents.get(node.task.name, ()):
            dependent = scope.nodes[name]
            dependent.blockers -= 1
            if not dependent.blockers:
                self._unblocked.append(dependent)
        scope.unfinished -= 1
        if not scope.unfinished:
            self._close(scope)
