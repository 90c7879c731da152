"""A pipeline whose task makes trouble of a kind that is asked for: `python troubles.py FILE`."""

import sys

from kfp import compiler, dsl


@dsl.component
def trouble(kind: str, mark: str) -> int:
    import os
    import signal
    import subprocess

    if kind == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == "worker":  # the process that it was forked from
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    if kind == "exit":
        sys_exit = __import__("sys").exit
        sys_exit("these are its last words")
    if kind == "endless":
        for _ in range(64):
            print("x" * (1 << 20))  # noqa: T201
    if kind == "daemon":
        daemon = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        with open(mark, "w") as file:
            file.write(str(daemon.pid))
    return 1


@dsl.component
def after(number: int) -> int:
    return number + 1


@dsl.component
def large(count: int) -> str:
    return "y" * count


@dsl.component
def length(text: str) -> int:
    return len(text)


@dsl.pipeline(name="troubles")
def troubles(kind: str, mark: str = "", count: int = 1) -> int:
    after(number=trouble(kind=kind, mark=mark).output)
    return length(text=large(count=count).output).output


if __name__ == "__main__":
    compiler.Compiler().compile(troubles, sys.argv[1])
