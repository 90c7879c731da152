"""Convert the trace of a task in a process of its own, with little memory and time.

    python -m clew.pipelines.pods.conversion_process MEMORY CPU_SECONDS

The container of the task wrote the trace, and may write one whose conversion never ends, or takes
all memory of the process that performs the run, with the tasks of other users in it.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from clew.pipelines.pods.execution_events import PodRecord, build_events
from clew.pipelines.pods.task_documents import TaskTrace
from clew.pipelines.pods.witnessed_processes import NotWitnessed, TracedTask, convert_trace
from clew.prov.events import AnyEvent

_MAX_ANSWER = 256 << 20
"""Bytes of the events."""
_TOO_LARGE = "its trace takes too much memory or time"


class Limits(NamedTuple):
    """The largest trace that is kept takes a part of them, if a real command wrote it."""

    memory: int = 4 << 30
    cpu_seconds: int = 120


_LIMITS = Limits()


class _Question(Struct, frozen=True):
    task: TracedTask
    trace: TaskTrace
    record: PodRecord
    stored: list[str]


class _Answer(Struct, frozen=True):
    why_not: str = ""
    events: list[AnyEvent] = []


def build_traced_events(
    task: TracedTask,
    trace: TaskTrace,
    record: PodRecord,
    stored: Iterable[str],
    limits: Limits = _LIMITS,
) -> list[AnyEvent]:
    """The events of an attempt with its processes. Raises NotWitnessed."""
    question = _Question(task, trace, record, list(stored))
    program = [sys.executable, "-P", "-m", "clew.pipelines.pods.conversion_process"]
    done = subprocess.run(
        [*program, *map(str, limits)],
        input=msgspec.msgpack.encode(question),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise NotWitnessed(_TOO_LARGE)
    answer = msgspec.msgpack.decode(done.stdout, type=_Answer)
    if answer.why_not:
        raise NotWitnessed(answer.why_not)
    return answer.events


def main() -> None:
    _limit_resources(Limits(*map(int, sys.argv[1:])))
    question = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Question)
    sys.stdout.buffer.write(_answer(question))


def _limit_resources(limits: Limits) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (limits.memory, limits.memory))
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # of a container without memory, the kernel ends this process first
        Path(f"/proc/{os.getpid()}/oom_score_adj").write_text("1000")


def _answer(question: _Question) -> bytes:
    task, trace, record = question.task, question.trace, question.record
    try:
        witnessed = convert_trace(task, trace, record, question.stored)
        answer = _Answer(events=build_events(record, question.stored, witnessed))
        encoded = msgspec.msgpack.encode(answer)
    except NotWitnessed as error:
        return msgspec.msgpack.encode(_Answer(why_not=str(error)))
    except MemoryError:
        encoded = b""
    if not 0 < len(encoded) <= _MAX_ANSWER:
        return msgspec.msgpack.encode(_Answer(why_not=_TOO_LARGE))
    return encoded


if __name__ == "__main__":
    main()
