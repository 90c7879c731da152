"""Options that several agents have, and the policy that they name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from clew.witness.volumes.selection import Policy, parse_policy

MB = 1 << 20
_MAX_POLICY = 1 << 20

_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

node_name_option = click.option(
    "--node",
    "name",
    envvar="NODE_NAME",
    help="The name of this node in Kubernetes; default: NODE_NAME, else the host name.",
)


def state_option(contents: str) -> _Decorator:
    """`--state DIR`, where an agent keeps its spool and these contents."""
    return click.option(
        "--state",
        type=click.Path(file_okay=False, path_type=Path),
        help=f"Where {contents} are kept; default: in the project, or with "
        "CLEW_SERVER in the user's state directory.",
    )


def spool_limit_option(default: int, *, when_full: str, smallest: int = 1) -> _Decorator:
    """`--spool-limit MB`; `when_full` completes its help."""
    return click.option(
        "--spool-limit",
        default=default,
        show_default=True,
        type=click.IntRange(min=smallest),
        metavar="MB",
        help=f"The largest size of the spool; {when_full}.",
    )


def read_policy(file: Path | None) -> Policy:
    """The policy in a file; without one, everything on claims is watched."""
    if file is None:
        return Policy()
    with file.open("rb") as opened:
        return parse_policy(opened.read(_MAX_POLICY + 1))
