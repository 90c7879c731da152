"""A task over its time limit gets SIGTERM, then SIGKILL."""

import signal

from clew.pipelines.engine.deadlines import KILL_GRACE, Deadlines


def test_deadlines() -> None:
    deadlines = Deadlines()
    deadlines.start("a", 5, 100.0)
    deadlines.start("b", None, 100.0)
    deadlines.start("c", 50, 100.0)
    assert deadlines.next() == 105.0
    assert deadlines.pop_expired(104.0) == []
    assert deadlines.pop_expired(105.0) == [("a", signal.SIGTERM)]
    for again in (1, 2):  # repeated: the process may not have started yet
        assert deadlines.pop_expired(105.0 + again * KILL_GRACE)[0] == ("a", signal.SIGKILL)
    assert deadlines.end("a") == "it took longer than its 5 seconds"
    assert deadlines.end("b") is None
    assert deadlines.end("c") is None
    assert deadlines.next() is None
