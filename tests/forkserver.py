"""Start `clew` as a process of its own without starting Python for each command.

The tests run thousands of commands, and importing Clew takes longer than most of them. A fork
server imports it once per test worker, then every command is a fork of that: it has its own pid,
streams, working directory, environment, signals and exit status. `Popen` and `run` take what
`subprocess` takes; whatever a fork cannot have (another program, a changed user, variables that
Python or the loader reads at start-up) runs as a plain subprocess.

A forked `clew exec` waits longer for its server: on a loaded machine, a good server may need more
than the two seconds.
"""

import atexit
import gc
import importlib
import io
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

CLEW = (sys.executable, "-m", "clew")

_PRELOADED = ("clew.server.app", "uvicorn.protocols.http.auto", "psycopg")
_READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_")
"""Prefixes of the variables that have their effect before Python runs any of our code."""
_USUAL = ("C.UTF-8", "en_US.UTF-8", "C", "POSIX")
"""Locales in which Python reads and writes UTF-8, as in the fork server's own."""
_INHERITED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that a command ignores if its caller does."""
_LIMIT = 100_000
"""Bytes of a request; a socket takes about twice as much at once."""


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen`, by a fork where the command is `clew`."""

    _status: socket.socket | None = None

    def _execute_child(self, *given: Any) -> None:
        args, _, preexec, _, pass_fds, cwd, env, _, _, shell, *pipes = given[:16]
        words = [args] if isinstance(args, (str, bytes, os.PathLike)) else list(args)
        plain = preexec is None and not pass_fds and not shell and given[16:] == _UNCHANGED
        if plain and tuple(words[:3]) == CLEW:
            # The positions as of Python 3.11: stdin, stdout and stderr are the child's ends.
            streams = (pipes[0], pipes[3], pipes[5])
            forked = _server().start(words[3:], streams, cwd=cwd, environment=env)
            if forked is not None:
                self.pid, self._status = forked
                self._child_created = True
                self._close_pipe_fds(*pipes)
                return
        super()._execute_child(*given)

    def _internal_poll(self, *given: Any, **more: Any) -> int | None:
        if self._status is None:
            return super()._internal_poll(*given, **more)
        if self.returncode is None:
            self._receive(0)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self._status is None:
            return super()._wait(timeout)
        if self.returncode is None and not self._receive(timeout):
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def _receive(self, timeout: float | None) -> bool:
        assert self._status is not None
        self._status.settimeout(timeout)
        try:
            status = self._status.recv(8)
        except (TimeoutError, BlockingIOError):
            return False
        self._status.close()
        assert status, "the fork server ended"
        self.returncode = os.waitstatus_to_exitcode(int.from_bytes(status, "little"))
        return True


_UNCHANGED = (True, None, None, None, -1, False, -1)
"""restore_signals, gid, gids, uid, umask, start_new_session, process_group: the defaults."""


def run(
    words: Any, *, timeout: float | None = None, **more: Any
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run`, by a fork where the command is `clew`."""
    given = more.pop("input", None)
    if given is not None:
        more["stdin"] = subprocess.PIPE
    if more.pop("capture_output", False):
        more["stdout"] = more["stderr"] = subprocess.PIPE
    check = more.pop("check", False)
    with Popen(words, **more) as process:
        try:
            out, err = process.communicate(given, timeout)
        except BaseException:
            process.kill()
            raise
        ran = subprocess.CompletedProcess(words, process.returncode, out, err)
    if check:
        ran.check_returncode()
    return ran


class _Server:
    """The test worker's end: it starts the fork server, and asks it for processes."""

    def __init__(self) -> None:
        self._environment = {**os.environ, "LC_ALL": _USUAL[0]}
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                env=self._environment,
            )
        atexit.register(self._stop)

    def start(
        self,
        words: list[Any],
        streams: tuple[int, int, int],
        *,
        cwd: Any,
        environment: dict[str, str] | None,
    ) -> tuple[int, socket.socket] | None:
        """The pid, and where the status will be sent; None: it takes a plain subprocess."""
        variables = dict(os.environ if environment is None else environment)
        folder = os.fsencode(cwd or os.curdir)
        ignored = [number for number in _INHERITED if signal.getsignal(number) is signal.SIG_IGN]
        words = [os.fsdecode(word) for word in words]
        request = (os.path.abspath(folder), variables, words, ignored)
        message = pickle.dumps(request)
        if _at_start(variables) != _at_start(self._environment) or len(message) > _LIMIT:
            return None
        if not os.access(folder, os.X_OK):
            return None  # it fails as subprocess does
        status, theirs = socket.socketpair()
        with theirs:
            files = [number if fd == -1 else fd for number, fd in enumerate(streams)]
            socket.send_fds(self._control, [message], [theirs.fileno(), *files])
        pid = status.recv(8)
        assert pid, "the fork server ended"
        return int.from_bytes(pid, "little"), status

    def _stop(self) -> None:
        self._control.close()
        self._process.wait()


_started: list[_Server] = []


def _server() -> _Server:
    if not _started:
        _started.append(_Server())
    return _started[0]


def _at_start(variables: dict[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(_READ_AT_START)
        and not (name.startswith(("LC_", "LANG")) and value in _USUAL)
    }


def _serve(control: socket.socket) -> None:
    """Fork for each request until the other end is closed; send the status of what has ended."""
    woken, wake = socket.socketpair()
    for end in (woken, wake):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    statuses: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for readable in (control, woken):
            selector.register(readable, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                woken.recv(4096)
                _send_statuses(statuses)
            if control in ready:
                message, files, _, _ = socket.recv_fds(control, 2 * _LIMIT, 4)
                if not message:
                    return
                status = socket.socket(fileno=files[0])
                pid = os.fork()
                if not pid:
                    _become(*pickle.loads(message), files[1:])
                status.send(pid.to_bytes(8, "little"))
                statuses[pid] = status
                for file in files[1:]:
                    os.close(file)


def _send_statuses(statuses: dict[int, socket.socket]) -> None:
    while statuses:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with statuses.pop(pid) as connection, suppress(BrokenPipeError):  # not waited for
            connection.send(status.to_bytes(8, "little"))


def _become(
    folder: bytes,
    variables: dict[str, str],
    words: list[str],
    ignored: list[signal.Signals],
    files: list[int],
) -> NoReturn:
    """Run `clew` in this process, as if Python had just been started for it."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for inherited in _INHERITED:
        default = signal.default_int_handler if inherited == signal.SIGINT else signal.SIG_DFL
        signal.signal(inherited, signal.SIG_IGN if inherited in ignored else default)
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, 1024)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    time.tzset()
    sys.path[0] = os.fsdecode(folder)
    sys.argv = [str(Path(sys.modules["clew"].__file__ or "").with_name("__main__.py")), *words]
    sys.stdin = _stream(0, "r", "surrogateescape")
    sys.stdout = _stream(1, "w", "surrogateescape")
    sys.stderr = _stream(2, "w", "backslashreplace")
    from clew.cli.main import main

    try:
        status: Any = main()
    except SystemExit as end:  # click's shell completion
        status = end.code
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status or 0)


def _stream(file: int, mode: str, errors: str) -> io.TextIOWrapper:
    """As Python opens its own."""
    by_line = 1 if mode == "w" and (file == 2 or os.isatty(file)) else -1
    return open(file, mode, by_line, encoding="utf-8", errors=errors, closefd=False)


def _preload() -> None:
    from clew.api.delivery import delivery
    from clew.cli.main import COMMANDS

    for module in (*(f"clew.cli.commands.{name}" for name in COMMANDS), *_PRELOADED):
        importlib.import_module(module)
    delivery._WAIT_SECONDS = 60.0
    gc.collect()
    gc.freeze()  # so that a child's collections do not copy what it shares


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        _preload()
        _serve(connection)
