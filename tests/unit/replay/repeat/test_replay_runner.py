"""What is refused before a sandbox is made."""

import os
from pathlib import Path

import pytest
from tests.unit.replay.record_builder import RecordBuilder

from clew import project_directory, settings
from clew.errors import ClewError
from clew.replay.repeat.repeat_plan import make_plan
from clew.replay.repeat.replay_runner import ReplayRunner
from clew.replay.repeat.secret_values import SecretValues
from clew.run.launch.execution_host import Derivation


def test_programs_of_another_architecture_are_refused(tmp_path: Path) -> None:
    other = "aarch64" if os.uname().machine == "x86_64" else "x86_64"
    record = RecordBuilder("x", facets={"cpu": {"architecture": other}}).record()
    plan = make_plan(record, read_listing=lambda _: [], values=SecretValues({}), network=False)
    own = settings.load({})
    runner = ReplayRunner(project_directory.init(tmp_path, own), own)
    with pytest.raises(ClewError, match=f"recorded on {other}") as refused:
        runner.run(plan, Derivation("repetition", "e1", "e1"))
    assert other in refused.value.hint
