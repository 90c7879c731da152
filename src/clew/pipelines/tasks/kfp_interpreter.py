"""Find the Python that runs components and compiles pipelines: one that has the kfp SDK."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from stat import S_ISDIR

import msgspec
from blake3 import blake3
from msgspec import Struct

from clew.errors import NotFound, UsageError
from clew.pipelines.tasks.worker_pool import task_environment
from clew.run.launch import tracer_process
from clew.run.launch.input_snapshot import InputSnapshot
from clew.witness import tracer_binary
from clew.witness.syscalls.trace_format import AnyRecord, Exit, Look, Trace

_HAS_KFP = """
import sys
sys.path = [place for place in sys.path if place]
import importlib.util
sys.exit(importlib.util.find_spec("kfp") is None)
"""
"""Does not search the working directory: a worker does not, either."""

_COMPILE = """
import importlib.util, os, sys, warnings
warnings.simplefilter("ignore")
source, target = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.abspath(source)))
spec = importlib.util.spec_from_file_location("clew_compiled_pipeline", source)
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
from kfp import compiler
from kfp.dsl.graph_component import GraphComponent
found = {
    name: value for name, value in vars(module).items()
    if isinstance(value, GraphComponent)
    and getattr(value.pipeline_func, "__module__", None) == spec.name
}
used = {name for value in found.values() for name in value.pipeline_func.__code__.co_names}
outer = {name: value for name, value in found.items() if name not in used}
if len(outer) != 1:
    sys.exit("it has %d pipelines that no other one uses, not one: %s"
             % (len(outer), ", ".join(sorted(outer)) or "none"))
compiler.Compiler().compile(*outer.values(), target)
"""
"""A pipeline that another pipeline of the file uses is a component of it."""


_MAX_CACHED = 16
"""Cached results, each for other variables or another working directory."""


class _ProbeResult(Struct):
    """Whether a Python has the SDK, and the files that this depends on."""

    has_kfp: bool
    inputs: bytes


class _KfpProbe:
    """Checks in the background whether a Python has the SDK.

    That takes a tenth of a second where `python3` is a wrapper script. So the check is traced, and
    its result is cached until a file that it read changes."""

    def __init__(self, python: str, cache: Path) -> None:
        """`cache`: the directory of the results."""
        self._tracer: int | None = None
        self._command = (python, "-c", _HAS_KFP)
        environ = task_environment({})
        self._cache = cache / _cache_key(python, environ)
        self._trace = cache / f"{os.urandom(8).hex()}.trace"
        self._result = _read_cached(self._cache)
        self._done = self._holds()
        if not self._done:
            with suppress(OSError):  # then it runs without the tracer
                self._tracer = self._start(environ)

    def _start(self, environ: Mapping[str, str]) -> int:
        self._cache.parent.mkdir(parents=True, exist_ok=True)
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        try:
            command = tracer_binary.tracer_command(
                self._command,
                tracer=os.fspath(tracer_binary.TRACER),
                library=os.fspath(tracer_binary.LIBRARY),
                trace=os.fspath(self._trace),
                save_to=None,
                notify=nothing,
                exclude=(),
                starter=os.getpid(),
            )
            return tracer_process.start(
                command,
                environ,
                descriptors=(nothing, nothing, nothing),
                handed=(nothing,),
                blocked=(),
            )
        finally:
            os.close(nothing)

    def _holds(self) -> bool:
        cached = self._result
        if cached is None:
            return False
        try:
            return InputSnapshot.load(cached.inputs).changed() is None
        except msgspec.MsgspecError:
            return False

    def guess(self) -> bool:
        """The result of the last check, which may be outdated."""
        return self._result is None or self._result.has_kfp

    def result(self) -> bool:
        if not self._done:
            self._result = self._traced() or self._untraced()
            self._done = True
        assert self._result is not None
        return self._result.has_kfp

    def _traced(self) -> _ProbeResult | None:
        """None if tracing is not possible."""
        if self._tracer is None:
            return None
        pid, self._tracer = self._tracer, None
        has_kfp = tracer_process.wait(pid) == 0
        with closing(Trace(self._trace)) as trace:
            records = trace.read()
        if not any(isinstance(record, Exit) for record in records):
            return None
        inputs = InputSnapshot.from_trace(one for one in records if not _is_look_at_directory(one))
        answer = _ProbeResult(has_kfp, inputs.dump())
        with suppress(OSError):
            self._trace.write_bytes(msgspec.msgpack.encode(answer))
            self._trace.replace(self._cache)
            for old in sorted(self._cache.parent.iterdir(), key=os.path.getmtime)[:-_MAX_CACHED]:
                old.unlink()
        return answer

    def _untraced(self) -> _ProbeResult:
        completed = subprocess.run(self._command, check=False, capture_output=True)
        return _ProbeResult(completed.returncode == 0, b"")

    def close(self) -> None:
        if self._tracer is not None:
            os.kill(self._tracer, signal.SIGKILL)
            tracer_process.wait(self._tracer)
        self._trace.unlink(missing_ok=True)


def _is_look_at_directory(record: AnyRecord) -> bool:
    """A shell checks each directory above the working directory, which does not matter here."""
    return (
        isinstance(record, Look) and record.file_stat is not None and S_ISDIR(record.file_stat.mode)
    )


def _cache_key(python: str, environ: Mapping[str, str]) -> str:
    """A hash of what the result depends on, besides files."""
    words = [python, os.getcwd(), *(f"{name}={value}" for name, value in sorted(environ.items()))]
    return blake3(os.fsencode("\0".join(words))).hexdigest()


def _read_cached(cache: Path) -> _ProbeResult | None:
    try:
        return msgspec.msgpack.decode(cache.read_bytes(), type=_ProbeResult)
    except (OSError, msgspec.MsgspecError):
        return None


class InterpreterSearch:
    """Finds the Python that runs components, in the background: the caller's `python3` if it has
    the SDK, as components expect; otherwise Clew's own."""

    def __init__(self, cache: Path) -> None:
        """`cache`: the user's cache directory."""
        self._callers = shutil.which("python3") or sys.executable
        self._probe: _KfpProbe | None = None
        if os.path.dirname(self._callers) != os.path.dirname(sys.executable):
            self._probe = _KfpProbe(self._callers, cache / "kfp-pythons")

    def guess(self) -> str:
        """Probably the result, without waiting."""
        is_callers = self._probe is None or self._probe.guess()
        return self._callers if is_callers else sys.executable

    def result(self) -> str:
        if self._probe is not None and self._probe.result():
            return self._callers
        if importlib.util.find_spec("kfp") is not None:
            return self._callers if self._probe is None else sys.executable
        raise NotFound(
            "no python3 here has the kfp SDK, which runs components", hint="pip install kfp"
        )

    def close(self) -> None:
        if self._probe:
            self._probe.close()


def find_interpreter(cache: Path) -> str:
    """The Python that runs components."""
    with closing(InterpreterSearch(cache)) as search:
        return search.result()


def compile_pipeline(source: Path, python: str) -> str:
    """The YAML of the one pipeline that a Python file defines."""
    if not source.is_file():
        raise NotFound(f"no file {source}", hint="clew pipeline run FILE.yaml|FILE.py")
    with tempfile.TemporaryDirectory(prefix="clew-pipeline-") as directory:
        target = Path(directory) / "pipeline.yaml"
        ran = subprocess.run(
            [python, "-c", _COMPILE, str(source), str(target)],
            check=False,
            capture_output=True,
            text=True,
        )
        if ran.returncode:
            last = (ran.stderr.strip().splitlines() or ["it failed"])[-1]
            raise UsageError(f"{source} cannot be compiled: {last}", hint=f"{python} {source}")
        return target.read_text()
