"""How each task is run: what it finds in its environment, and which kind of attempt it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from clew.folder import Folder
from clew.pipelines.ir import PythonFunction
from clew.pipelines.resolving import filled
from clew.pipelines.scopes import Node
from clew.pipelines.tasks import Attempt, Errand, Warm
from clew.pipelines.venvs import Venvs
from clew.pipelines.workers import Workers
from clew.run import caller
from clew.settings import Settings


class Attempts:
    """Those of one run. `say` is told what takes its time."""

    def __init__(
        self,
        folder: Folder,
        settings: Settings,
        python: str,
        facts: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self.workers = Workers(folder, settings)
        self._venvs = Venvs(settings.cache, python, say)
        self._python = python
        self._facts = facts

    def variables(self, node: Node) -> dict[str, str]:
        """What a task finds beside the caller's own variables."""
        body = node.component.body
        assert isinstance(body, PythonFunction)
        found = {}
        if body.installs:
            path = caller.environment().get("PATH", "")
            found = self._venvs.of(body.installs).variables(path)
        for name, value in body.environment.items():
            found[name] = str(filled(value, node.inputs, node, self._facts))
        return found

    def attempt(self, errand: Errand, variables: Mapping[str, str]) -> Attempt:
        body = errand.node.component.body
        assert isinstance(body, PythonFunction)
        if not body.installs:
            return Warm(errand, self.workers, self._python, variables)
        venv = self._venvs.of(body.installs)
        return Warm(errand, self.workers, venv.python, variables, (self._venvs, venv))
