"""Resolves targets as a user of a test project would."""

import os
from collections.abc import Callable

import pytest
from tests.unit.prov.execution_builder import MACHINE, digest

from clew.prov.graph import Graph
from clew.prov.queries.targets import Target, resolve_target

Ask = Callable[..., Target]


@pytest.fixture
def target(graph: Graph) -> Ask:
    """Resolve as a user in /w would see it; `now` says what files hold."""

    def ask(text: str, **now: str) -> Target:
        held = {f"/w/{name}".encode(): digest(text) for name, text in now.items()}
        return resolve_target(
            graph,
            text,
            machine=MACHINE,
            locate=lambda path: os.path.normpath(os.path.join(b"/w", path)),
            digest_of=held.get,
        )

    return ask
