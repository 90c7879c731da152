"""`clew cluster`: show what existed in a Kubernetes cluster at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clew.cli.commands.trace import as_of_option
from clew.cli.main import COMMANDS
from clew.cli.options import json_option, pager_option
from clew.cli.output import escape, print_json, print_line, print_message

if TYPE_CHECKING:
    from clew.documents.lineage.cluster_state import ClusterObject


@click.command(
    "cluster",
    short_help=COMMANDS["cluster"],
    epilog="Examples: clew cluster --as-of 2026-11-17T09:30 | clew cluster --namespace team",
)
@as_of_option
@click.option("--namespace", metavar="NAME", help="Only objects of this namespace.")
@json_option
@pager_option
def command(as_of: str | None, namespace: str | None, as_json: bool) -> None:
    """Show the Pods, claims, Services and other controllers, ConfigMaps and Secrets that existed in
    the observed cluster: now, or at the time --as-of."""
    import clew
    from clew.cli.times import parse_time

    with clew.open() as project:
        state = project.pods.state(as_of=parse_time(as_of, option="--as-of"), namespace=namespace)
    if as_json:
        print_json(state.as_json())
        return
    for one in state.objects:
        print_line(_describe(one))
    if state.truncated:
        print_message("there were more: --namespace NAME")


def _describe(one: ClusterObject) -> str:
    words = [f"{one.kind} {one.namespace}/{one.name}"]
    facts = (
        ("", one.id),
        ("on ", one.node),
        ("of ", one.owner),
        ("bound to ", one.volume),
        ("leads to ", ", ".join(one.pods)),
        ("", ", ".join(f"{name} {digest}" for name, digest in sorted(one.images.items()))),
        ("", one.digest),
        ("by ", one.agent),
    )
    words += [f"{before}{fact}" for before, fact in facts if fact]
    return escape("  ".join(words))
