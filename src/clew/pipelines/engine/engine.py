"""What is ready, skipped, tried again and over: decided from plain state, without any IO.

`begin` and `ended` are given what happened and answer with instructions: to run a task, and
that one is over. Whoever carries them out decides how many run at once, and where.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from msgspec import Struct, field

from clew.pipelines.engine.input_resolution import (
    BadInput,
    bind_iteration,
    fill_placeholders,
    import_artifact,
    list_loop_items,
    resolve_inputs,
    select_declared,
)
from clew.pipelines.engine.producers import find_producers
from clew.pipelines.engine.scopes import (
    FINAL_STATES,
    Node,
    Scope,
    Values,
    collect_outputs,
    join_path,
)
from clew.pipelines.spec.conditions import CannotCompare
from clew.pipelines.spec.ir import Dag, Importer, Pipeline

READY_LIMIT = 256
"""More than run at once, so that one that fits is found; few enough for any memory."""


class StartTask(Struct, frozen=True):
    """Run this task; `wait` seconds from now where it failed before. A pipeline is run by telling
    the engine that it is time to (`again`)."""

    node: Node
    attempt: int
    wait: float = 0.0


class TaskFinished(Struct, frozen=True):
    """This task is over, and how: nothing more will happen to it."""

    node: Node
    why: str | None = None
    """Why it did not run."""


Instruction = StartTask | TaskFinished


class TaskResult(Struct, frozen=True):
    """How a task that was run ended."""

    error: str | None = None
    outputs: Values = field(default_factory=Values)


class Engine:
    """One run of one pipeline."""

    def __init__(
        self,
        pipeline: Pipeline,
        inputs: Values,
        facts: Mapping[str, str] | None = None,
        *,
        ahead: int = READY_LIMIT,
    ) -> None:
        """`ahead`: as long as so many tasks wait or run, loops begin no more iterations."""
        assert isinstance(pipeline.root.body, Dag)
        self._pipeline = pipeline
        self._facts = facts or {}
        self._ahead = ahead
        self._first = 0  # how many wait for their first try, or run it
        self._loops: list[Node] = []  # those that have iterations to begin
        self._homes: dict[str, Scope] = {}
        self._running: dict[str, Node] = {}
        self._resting: dict[str, Node] = {}
        self._due: deque[Scope] = deque()
        self._said: list[Instruction] = []
        self._root = self._scope("", pipeline.root.body, inputs, None)

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
        self._due.append(self._root)
        return self._pump()

    def ended(self, path: str, outcome: TaskResult) -> list[Instruction]:
        """The task at `path`, which was to be run, has ended like this."""
        node = self._running.pop(path)
        self._first -= node.attempts == 1
        node.error = outcome.error
        if outcome.error is None:
            node.outputs = outcome.outputs
            self._settle(node, "succeeded")
        elif node.attempts <= node.task.retry.most:
            self._run(node, wait=node.task.retry.pause(node.attempts))
        else:
            self._settle(node, "failed")
        return self._pump()

    def again(self, path: str) -> list[Instruction]:
        """The pipeline at `path`, which was to be run again, has waited long enough."""
        node = self._resting.pop(path)
        self._start(node, node.inputs)
        return self._pump()

    def cancel(self) -> list[TaskFinished]:
        """Nothing more is to run: what is under way is over."""
        stopped = list(self._running.values())
        self._running.clear()
        for node in stopped:
            node.state = "canceled"
        return [TaskFinished(node, "the run was canceled") for node in stopped]

    # -- going on

    def _pump(self) -> list[Instruction]:
        while self._due or self._begin_iteration():
            scope = self._due.popleft()
            if not scope.closed:
                self._advance(scope)
        said, self._said = self._said, []
        return said

    def _advance(self, scope: Scope) -> None:
        moved = True
        while moved:
            moved = False
            for node in scope.nodes.values():
                if node.state == "pending" and self._is_due(scope, node):
                    self._decide(scope, node)
                    moved = True
        if all(node.state in FINAL_STATES for node in scope.nodes.values()):
            scope.close()
            for node in scope.nodes.values():
                del self._homes[node.path]
            if scope.owner is not None:
                self._left(scope, scope.owner)

    def _is_due(self, scope: Scope, node: Node) -> bool:
        return all(scope.nodes[name].state in FINAL_STATES for name in node.task.after)

    def _decide(self, scope: Scope, node: Node) -> None:
        """All before it is over: it runs, or it is skipped, or it cannot run."""
        if not node.task.always:
            for name in sorted(node.task.after):
                before = scope.nodes[name].state
                if before != "succeeded":
                    self._skip(node, f"{name} {'failed' if before == 'failed' else 'was skipped'}")
                    return
        try:
            found = resolve_inputs(scope, node, self._facts)
            condition = node.task.condition
            if condition is not None and not condition.holds(
                found.parameters,
                lambda constant: fill_placeholders(constant, found, node, self._facts),
            ):
                self._skip(node, f"the condition does not hold: {condition.text}")
                return
            self._start(node, found)
        except (BadInput, CannotCompare) as error:
            node.error = str(error)
            self._settle(node, "failed", why=str(error))

    def _start(self, node: Node, found: Values) -> None:
        body, loop = node.component.body, node.task.loop
        if isinstance(body, Importer) and not body.copied:
            node.inputs = select_declared(node, found)
            node.outputs = import_artifact(node, found, self._facts)
            self._settle(node, "succeeded")
        elif not isinstance(body, Dag):
            node.inputs, node.given = select_declared(node, found), found
            node.informed = frozenset(find_producers(self._homes, node))
            self._run(node)
        elif loop is None:
            node.inputs = found
            node.state, node.scopes = "running", {}
            self._enter(node, body, node.path, select_declared(node, found))
        else:
            node.inputs, node.common = found, select_declared(node, found)
            node.state, node.scopes, node.begun = "running", {}, 0
            node.waiting = list_loop_items(node, loop, node.common, found, self._facts)[::-1]
            if node.waiting:
                self._loops.append(node)
            else:
                self._finish(node)

    def _begin_iteration(self) -> bool:
        """Of the innermost loop that may begin one, so that what was begun comes to its end."""
        if self._first >= self._ahead:
            return False
        node = max(
            (one for one in self._loops if one.may_begin), key=lambda one: one.depth, default=None
        )
        if node is None:
            return False
        loop, body = node.task.loop, node.component.body
        assert loop is not None
        assert isinstance(body, Dag)
        inputs = bind_iteration(node, loop, node.common, node.waiting.pop())
        path = join_path(node.path, str(node.begun))
        node.begun += 1
        if not node.waiting:
            self._loops.remove(node)
        self._enter(node, body, path, inputs)
        return True

    def _enter(self, node: Node, body: Dag, path: str, inputs: Values) -> None:
        inside = self._scope(path, body, inputs, node)
        node.scopes[path] = inside
        node.open += 1
        self._due.append(inside)

    def _left(self, scope: Scope, node: Node) -> None:
        """One of its scopes is closed; an iteration that nobody will ask about is forgotten."""
        node.open -= 1
        if node.task.loop is not None and not scope.dag.gives and scope.failed is None:
            del node.scopes[scope.path]
        if not node.open and not node.waiting:
            self._finish(node)

    def _finish(self, node: Node) -> None:
        """All inside is over."""
        failed = next((bad for scope in node.scopes.values() if (bad := scope.failed)), None)
        if failed is None:
            body = node.component.body
            assert isinstance(body, Dag)
            looped, inside = node.task.loop is not None, node.scopes.values()
            node.outputs = collect_outputs(inside, body) if looped else next(iter(inside)).outputs()
            node.state = "succeeded"
        else:
            node.error = f"{failed.path} failed: {failed.error}"
            node.attempts += 1
            if node.attempts <= node.task.retry.most:
                self._resting[node.path] = node
                wait = node.task.retry.pause(node.attempts)
                self._said.append(StartTask(node, node.attempts + 1, wait))
                return
            node.state = "failed"
        self._due.append(self._home(node))

    # -- one task

    def _run(self, node: Node, wait: float = 0.0) -> None:
        node.state = "running"
        node.attempts += 1
        self._first += node.attempts == 1
        self._running[node.path] = node
        self._said.append(StartTask(node, node.attempts, wait))

    def _skip(self, node: Node, why: str) -> None:
        self._settle(node, "skipped", why=why)

    def _settle(self, node: Node, state: str, why: str | None = None) -> None:
        node.state = state
        self._said.append(TaskFinished(node, why))
        self._due.append(self._home(node))

    def _home(self, node: Node) -> Scope:
        return self._homes[node.path]

    def _scope(self, path: str, dag: Dag, inputs: Values, owner: Node | None) -> Scope:
        components = self._pipeline.components
        recurs = owner is not None and (owner.recurs or owner.task.retry.most > 0)
        nodes = {
            name: Node(task, components[task.component], join_path(path, name), recurs=recurs)
            for name, task in dag.tasks.items()
        }
        made = Scope(path, dag, inputs, nodes, owner)
        for node in nodes.values():
            self._homes[node.path] = made
        return made
