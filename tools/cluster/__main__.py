"""python -m tools.cluster up | down | stop PROGRAM | start PROGRAM | programs

`up` and `down` are what `make cluster` and `make cluster-down` call. The others are for tests of
what happens when a part of the cluster fails: a PROGRAM is one that `programs` lists.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.cluster import bringing_up, processes, taking_down
from tools.cluster.places import Cluster
from tools.cluster.saying import Failed, say


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
    given = parser.parse_args()
    try:
        _do(given, given.folder.resolve())
    except Failed as failed:
        say(str(failed))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _do(given: argparse.Namespace, folder: Path) -> None:
    if given.command == "up":
        bringing_up.tell(bringing_up.up(folder, bare=given.bare))
    elif given.command == "down":
        taking_down.down(folder)
    else:
        _do_with_programs(given, bringing_up.find(folder) or Cluster(folder))


def _do_with_programs(given: argparse.Namespace, cluster: Cluster) -> None:
    if given.command == "stop":
        processes.stop(cluster, given.program, how=given.signal)
    elif given.command == "start":
        processes.restart(cluster, given.program)
    else:
        for name in processes.names(cluster):
            print(name, "runs" if processes.lives(cluster, name) else "does not run")


if __name__ == "__main__":
    sys.exit(main())
