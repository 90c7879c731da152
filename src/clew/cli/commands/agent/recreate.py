"""`clew agent recreate`: let Pods that run already record their own files."""

from __future__ import annotations

import click

from clew.cli.options import json_option
from clew.cli.output import print_json, print_message


@click.command(
    "recreate",
    short_help="Replace Pods by ones that record which files they read and write.",
    epilog="Example: clew agent recreate deployment/train --namespace team",
)
@click.argument("target", metavar="KIND/NAME")
@click.option("--namespace", "-n", help="Default: that of the kubeconfig.")
@click.option(
    "--delete",
    is_flag=True,
    help="Delete a Pod that has no owner, and create it again. What it computed so far is lost.",
)
@json_option
def command(target: str, namespace: str | None, delete: bool, as_json: bool) -> None:
    """Replace Pods by ones that record which files they read and write.

    KIND is deployment, statefulset or daemonset: the annotation clew.dev/file-witness=sidecar in
    its template replaces its Pods by an ordinary rollout. Or pod, for one without an owner: it is
    deleted and created again, which needs --delete. It acts with your own rights on Kubernetes.
    """
    from clew.cli.kubernetes_extra import require_kubernetes

    require_kubernetes()
    from clew.agents.pod.file_sidecar_names import ANNOTATION, SIDECAR
    from clew.agents.pod.replacement_pod import copy_pod
    from clew.errors import NotAllowed, UsageError
    from clew.kube.objects import controller_of
    from clew.kube.pod_replacement import OWNERS, PodReplacement

    kind, _, name = target.partition("/")
    if not name or kind not in (*OWNERS, "pod"):
        raise UsageError(
            f"{target} is not one of {', '.join(OWNERS)} or pod, with a name after a slash",
            hint="a Job and its Pods are as their manifest says: add the annotation there",
        )
    pods = PodReplacement(namespace)
    if kind in OWNERS:
        pods.annotate_template(kind, name, {ANNOTATION: SIDECAR})
        if as_json:
            print_json({"target": target, "deleted": False})
        else:
            print_message(f"clew: {target} replaces its Pods")
        return
    old = pods.read_pod(name)
    owner = controller_of(old)
    if owner:
        raise NotAllowed(
            f"{target} belongs to the {owner['kind']} {owner['name']}, which would replace it",
            hint="name the Deployment, StatefulSet or DaemonSet",
        )
    if not delete:
        raise NotAllowed(
            f"{target} has no owner: to recreate it is to delete it",
            hint="--delete agrees to that",
        )
    pods.replace_pod(old, copy_pod(old))
    if as_json:
        print_json({"target": target, "deleted": True})
    else:
        print_message(f"clew: {target} was created again")
