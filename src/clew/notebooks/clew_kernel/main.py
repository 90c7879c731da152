"""Start the kernel. Its standard input is the connection to the recorder."""

import os
import sys


def main() -> None:
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if spare := os.environ.pop("CLEW_KERNEL_LIBRARIES", None):
        sys.path.append(spare)
    from clew_kernel import kernel, module_finder
    from clew_kernel.session_link import SessionLink
    from ipykernel.kernelapp import IPKernelApp

    kernel.link = SessionLink()
    module_finder.install()
    if spare:
        sys.path.remove(spare)
    del sys.path[
        0
    ]  # as ipykernel_launcher does; the application adds the directory of the notebook
    IPKernelApp.launch_instance(
        kernel_class=kernel.RecordedKernel,
        argv=[*sys.argv[1:], *_without_history(sys.argv)],
    )


def _without_history(given: list[str]) -> list[str]:
    """The history of all kernels is one database in the home directory: no part of a cell."""
    option = "--HistoryManager.hist_file="
    return [] if any(word.startswith(option) for word in given) else [f"{option}:memory:"]


if __name__ == "__main__":
    main()
