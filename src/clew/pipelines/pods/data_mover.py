"""The program of the helper's container in the Pod of a task.

    python -m clew.pipelines.pods.data_mover

It fetches the inputs of the task, lets the task begin, waits for its end, and stores the outputs if
it succeeded. `kube.tasks.task_pod` describes how the two containers agree. The result is written
last: of a Pod that is killed at any time, either everything is visible or nothing.
"""

import fcntl
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from clew import settings
from clew.errors import ClewError
from clew.kube.tasks.task_pod import LOCK, READY, STATUS
from clew.pipelines.pods import task_documents
from clew.pipelines.pods.artifact_store import ArtifactStore, StoredFile
from clew.pipelines.pods.task_documents import PodTaskResult, TaskPlan
from clew.pipelines.pods.task_outputs import LeftFile, TaskOutputs
from clew.pipelines.pods.task_tracer import TaskTracer

_TRANSFERS = 4
"""Files at the same time."""
_MAX_PARAMETERS = 256 << 20
"""Bytes of all output parameters."""
_MAX_LEFT_OUT = 100
"""How many names of what was left out are recorded."""
_POLL_SECONDS = 0.02
_PROGRAM = Path(__file__).with_name("component_main.py")


def main() -> None:
    """Exits with 0 also if the task failed: the container of the task says so."""
    place = os.environ[task_documents.VARIABLE]
    try:
        store = ArtifactStore(settings.load().s3)
        plan = _read_plan(store, place)
        inputs = _prepare(store, place, plan)
        tracing = TaskTracer(place, plan, inputs)
        Path(READY).touch()
        status = _await_status()
        with tracing.stored(store):
            result = _collect(store, place, plan, inputs) if status == 0 else None
        if result is not None:
            store.write(f"{place}/{task_documents.RESULT}", task_documents.encode(result))
    except ClewError as error:
        sys.exit(f"{error.message} ({error.hint})" if error.hint else error.message)
    except OSError as error:
        sys.exit(str(error))


def _read_plan(store: ArtifactStore, place: str) -> TaskPlan:
    data = store.read(f"{place}/{task_documents.PLAN}", most=task_documents.MAX_DOCUMENT)
    if data is None:
        raise ClewError(f"{place}/{task_documents.PLAN} is gone")
    return task_documents.decode_plan(data)


# -- before the task


def _prepare(store: ArtifactStore, place: str, plan: TaskPlan) -> list[StoredFile]:
    """Write the files of the task, and fetch its inputs."""
    directory = Path(task_documents.TASK)
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / task_documents.INPUT, json.dumps(plan.executor_input, ensure_ascii=False))
    if (call := plan.call) is not None:
        _write(directory / task_documents.SOURCE, call.source)
        document = {"function": call.function, "installs": call.installs}
        _write(directory / task_documents.CALL, json.dumps(document))
        shutil.copyfile(_PROGRAM, directory / _PROGRAM.name)
        _copy_sdk(Path(task_documents.SDK) / "kfp")
    outputs = Path(task_documents.data_path(place))
    outputs.mkdir(parents=True, exist_ok=True)
    for made in (outputs, directory):
        made.chmod(0o777)  # the task may run as any user
    wanted = [pair for url in plan.inputs for pair in _list_input(store, url)]
    with ThreadPoolExecutor(_TRANSFERS) as pool:
        return list(pool.map(lambda pair: store.download(*pair), wanted))


def _list_input(store: ArtifactStore, url: str) -> Iterator[tuple[str, Path]]:
    """The files of an artifact: one, those of a directory, or none."""
    if store.find(url) is not None:
        yield url, Path(task_documents.data_path(url))
        return
    for found in store.list(url):
        yield found.url, Path(task_documents.data_path(found.url))


def _copy_sdk(target: Path) -> None:
    source = Path(sys.prefix, "share", "kfp-runtime", "kfp")
    if not source.is_dir():
        return  # the image of the task must have it
    shutil.copytree(source, target, dirs_exist_ok=True)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)


# -- after the task


def _await_status() -> int | None:
    """Wait for the end of the task; None if it was killed without a status.

    The task's program holds the lock from before it waits for the file that lets it begin.
    """
    status = Path(STATUS)
    with open(LOCK, "a+b") as lock:
        while not _is_begun(lock.fileno()):
            if status.exists():
                break
            time.sleep(_POLL_SECONDS)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        return int(status.read_text())
    except (FileNotFoundError, ValueError):
        return None


def _is_begun(lock: int) -> bool:
    """Whether the task's program holds the lock."""
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(lock, fcntl.LOCK_UN)
    return False


def _collect(
    store: ArtifactStore, place: str, plan: TaskPlan, inputs: Iterable[StoredFile]
) -> PodTaskResult:
    directory = os.fsencode(task_documents.data_path(place).removeprefix(task_documents.DATA))
    with TaskOutputs(task_documents.DATA) as left:
        output = _read_output(left, directory)
        found = [
            (name, file)
            for name in plan.artifacts
            for file in left.list_files(directory + b"/" + os.fsencode(name))
        ]

        def upload(one: tuple[str, LeftFile]) -> StoredFile:
            name, file = one
            opened = left.open(file.path)
            if opened is None:
                raise ClewError(f"its output {name}{file.suffix} vanished")
            with opened:
                return store.upload(opened, f"{place}/{name}{file.suffix}")

        with ThreadPoolExecutor(_TRANSFERS) as pool:
            stored = list(pool.map(upload, found))
        texts = dict(_read_texts(left, directory, plan, output))
    artifacts: dict[str, list[StoredFile]] = {name: [] for name in plan.artifacts}
    for (name, _), file in zip(found, stored, strict=True):
        artifacts[name].append(file)
    return PodTaskResult(
        output=output,
        texts=texts,
        inputs=tuple(inputs),
        artifacts={name: tuple(files) for name, files in artifacts.items()},
        left_out=tuple(left.left_out[:_MAX_LEFT_OUT]),
    )


def _read_output(left: TaskOutputs, directory: bytes) -> dict[str, Any]:
    data = _read(left, directory + b"/" + task_documents.OUTPUT.encode(), _MAX_PARAMETERS)
    if data is None:
        return {}
    try:
        found = json.loads(data)
    except ValueError as error:
        raise ClewError(f"its {task_documents.OUTPUT} cannot be read: {error}") from error
    return found if isinstance(found, dict) else {}


def _read_texts(
    left: TaskOutputs, directory: bytes, plan: TaskPlan, output: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """The output parameters that have a file of their own."""
    room = _MAX_PARAMETERS
    for name in plan.parameters:
        if name in output.get("parameterValues", {}):
            continue
        data = _read(left, directory + b"/" + os.fsencode(name), room)
        if data is None:
            continue
        room -= len(data)
        try:
            yield name, data.decode()
        except UnicodeDecodeError as error:
            raise ClewError(f"its output {name} is not UTF-8: {error.reason}") from error


def _read(left: TaskOutputs, path: bytes, most: int) -> bytes | None:
    """The content of a file; None without one."""
    opened = left.open(path)
    if opened is None:
        return None
    with opened:
        data = opened.read(most + 1)
    if len(data) > most:
        raise ClewError("its output parameters are larger than 256 MiB", hint="make it an artifact")
    return data


if __name__ == "__main__":
    main()
