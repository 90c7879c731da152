"""`clew reproduce`: run the Pods that made something again, and compare."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from clew.cli.commands.repeat import DIFFERENT
from clew.cli.commands.trace import as_of_option
from clew.cli.main import COMMANDS
from clew.cli.options import dry_run_option, json_option
from clew.cli.output import escape, print_json, print_line, print_message
from clew.cli.secrets import run_with_secrets, secret_option

if TYPE_CHECKING:
    from clew.documents.lineage.reproduction import PlannedPod, Reproduction, SkippedPod


@click.command(
    "reproduce",
    short_help=COMMANDS["reproduce"],
    epilog="Examples: clew reproduce pvc://ml/data/metrics.json --dry-run | "
    "clew reproduce s3://models/m.pkl --network --secret AWS_SECRET_ACCESS_KEY",
)
@click.argument("target")
@as_of_option
@click.option(
    "--namespace", metavar="NAME", help="Run in this namespace; by default one is made and removed."
)
@click.option("--here", is_flag=True, help="Run in containers of this machine.")
@click.option("--network", is_flag=True, help="Let the Pods use the network.")
@secret_option
@click.option(
    "--deadline",
    metavar="SECONDS",
    type=click.IntRange(min=1, max=7 * 86400),
    help="How long each Pod may run (default: 3600).",
)
@click.option(
    "--helper-image",
    metavar="IMAGE",
    help="The image of Clew that writes and reads files on volumes.",
)
@dry_run_option
@json_option
def command(
    target: str,
    as_of: str | None,
    namespace: str | None,
    here: bool,
    network: bool,
    secrets: tuple[str, ...],
    deadline: int | None,
    helper_image: str | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run the fewest Pods that made TARGET again, and compare what they leave.

    TARGET is a file on a volume (pvc://NAMESPACE/CLAIM/PATH), an object (s3://BUCKET/KEY) or a Pod
    (pod/NAMESPACE/NAME). Outputs that are stored are restored; the Pods that made the others run in
    order, with their images by digest, on fresh volumes and buckets. Everything that was created is
    removed. The exit status is 3 if an output differs or a Pod cannot run.
    """
    if here and (namespace or helper_image):
        raise click.UsageError("--here excludes --namespace and --helper-image")
    import clew
    from clew.api.pods import DEADLINE_SECONDS
    from clew.cli.times import parse_time

    if not (dry_run or here):
        from clew.cli.kubernetes_extra import require_kubernetes

        require_kubernetes()
    with clew.open() as project:
        document = run_with_secrets(
            project,
            secrets,
            lambda: project.pods.reproduce(
                target,
                as_of=parse_time(as_of, option="--as-of"),
                dry_run=dry_run,
                here=here,
                namespace=namespace,
                network=network,
                deadline=deadline or DEADLINE_SECONDS,
                helper_image=helper_image,
                say=lambda text: print_message(f"clew: {escape(text)}"),
            ),
        )
    if as_json:
        print_json(document.as_json())
    else:
        _print(document)
    failed = document.plan and document.verdict != "identical" and not dry_run
    return DIFFERENT if failed else 0


def _print(document: Reproduction) -> None:
    pods: list[tuple[str, PlannedPod | SkippedPod]] = [
        *(("run ", pod) for pod in document.plan),
        *(("skip", pod) for pod in document.skipped),
    ]
    names = Counter((pod.namespace, pod.pod) for _, pod in pods)
    for verb, pod in pods:
        name = f"{escape(pod.namespace)}/{escape(pod.pod)}"
        if names[pod.namespace, pod.pod] > 1:
            name += f" ({escape(pod.uid[:8])})"
        print_line(f"{verb}  {name}: {escape(pod.why)}")
    by_volume = document.pods_by_volume
    print_line(f"Pods to run: {document.pods_by_file} by file, {by_volume} by volume")
    for one in document.not_reproduced:
        print_message(f"not as it was: {escape(one.what)}: {escape(one.why)}")
    for difference in document.differences:
        where = f"{escape(difference.path)} of {escape(difference.pod)}"
        print_message(f"{difference.kind:<8}  {where}")
    if document.divergence is not None:
        print_message(f"diverged first: {escape(document.divergence.pod)}")
        for cause in document.divergence.causes:
            print_message(f"  perhaps {escape(cause.cause)}: {escape(cause.detail)}")
    if document.verdict is not None:
        print_line(f"{document.verdict}: {document.compared} outputs compared")
    elif not document.plan:
        print_line("nothing has to run: the target is stored")
