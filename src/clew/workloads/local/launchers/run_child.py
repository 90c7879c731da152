"""Run a program that ends when its parent ends, even if the parent is killed.

    run_child.py PARENT PROGRAM ARGUMENTS…

The kernel sends SIGTERM to the program when the thread that started it ends (PR_SET_PDEATHSIG).
Jupyter then ends its kernels as well. This is a program of its own, because Python must not run
code between fork and exec in a process that has threads.
"""

import ctypes
import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1


def main() -> None:
    parent = int(sys.argv[1])
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the call
        sys.exit(1)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
