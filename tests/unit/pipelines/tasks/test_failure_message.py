"""Why a task failed, in one line."""

import pytest

from clew.pipelines.tasks.failure_message import explain_failure

TRACEBACK = """starting
Traceback (most recent call last):
  File "/usr/lib/kfp/dsl/executor.py", line 400, in execute
    result = self.func(**func_kwargs)
             ^^^^^^^^^^^^^^^^^^^^^^^^
  File "/p/pipeline-runs/r1/load/component.py", line 9, in load
    return json.loads(text)
           ^^^^^^^^^^^^^^^^
  File "/usr/lib/python3.11/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
ValueError: no rows
of this kind
the last line
"""


@pytest.mark.parametrize(
    ("status", "output", "message"),
    [
        (1, TRACEBACK, "ValueError: no rows (component.py, line 9: return json.loads(text))"),
        (
            1,
            TRACEBACK.replace("  File", "[KFP Executor 2026 INFO]: Looking for it\n  File", 1),
            "ValueError: no rows (component.py, line 9: return json.loads(text))",
        ),
        (3, TRACEBACK, "it ended with status 3: the last line"),
        (1, "Traceback (most recent call last):\nKeyboardInterrupt\n", "KeyboardInterrupt"),
        (1, "Traceback (most recent call last):\n  cut", "it ended with status 1: cut"),
        (2, "a\n  b \n\n[KFP Executor 2026 INFO]: done\n", "it ended with status 2: b"),
        (137, "", "it ended with signal 9"),
    ],
)
def test_explain_failure(status: int, output: str, message: str) -> None:
    assert explain_failure(status, output) == message


def test_a_long_line_is_cut() -> None:
    assert len(explain_failure(1, "x" * 10_000)) == 400
