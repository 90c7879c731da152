"""python -m tools.cluster up | down | stop PROGRAM | start PROGRAM | programs | image NAME FILE

`make cluster` and `make cluster-down` call `up` and `down`. The others are for tests of the failure
of a part of the cluster; `programs` lists each PROGRAM. `image` builds an image from a
Containerfile in the source tree and gives it to every node.
"""

import argparse
import sys
from pathlib import Path

from tools.cluster import fake_nodes, lifecycle, processes
from tools.cluster.commands import ClusterError, report
from tools.cluster.layout import Cluster


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.cluster", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(".cluster"), help="default: .cluster")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("up", "down", "programs"):
        commands.add_parser(name)
    for name in ("start", "stop"):
        commands.add_parser(name).add_argument("program")
    commands.choices["stop"].add_argument("--signal", default="TERM", help="default: TERM")
    commands.choices["up"].add_argument(
        "--bare", action="store_true", help="without the images of deploy/"
    )
    commands.choices["up"].add_argument(
        "--kwok", action="store_true", help="an API server and kwok alone, for tests of schedulers"
    )
    image = commands.add_parser("image")
    image.add_argument("name")
    image.add_argument("file", type=Path)
    given = parser.parse_args()
    try:
        _run_command(given, given.folder.resolve())
    except ClusterError as failed:
        report(str(failed))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _run_command(given: argparse.Namespace, folder: Path) -> None:
    if given.command == "up" and given.kwok:
        fake_nodes.bring_up_fake_nodes(folder)
    elif given.command == "up":
        lifecycle.report_up(lifecycle.bring_up(folder, bare=given.bare))
    elif given.command == "image":
        lifecycle.add_image(folder, given.name, given.file.resolve())
    elif given.command == "down":
        lifecycle.take_down(folder)
    else:
        _control_programs(given, lifecycle.find_cluster(folder) or Cluster(folder))


def _control_programs(given: argparse.Namespace, cluster: Cluster) -> None:
    if given.command == "stop":
        processes.stop(cluster, given.program, how=given.signal)
    elif given.command == "start":
        processes.restart(cluster, given.program)
    else:
        for name in processes.program_names(cluster):
            print(name, "runs" if processes.is_running(cluster, name) else "does not run")


if __name__ == "__main__":
    sys.exit(main())
