"""Recreate a file on the server, and write it here.

The server lists the contents it needs. The client sends those that it has unchanged on its disk.
"""

import os
import stat
from collections.abc import Callable
from typing import Any

from clew.api.delivery.http_client import error_from
from clew.api.local import versions
from clew.api.local.recreate import join_documents
from clew.api.remote import caller_paths, content_transfer, downloads
from clew.api.remote.client import Client, parse
from clew.api.remote.versions import foreign_cwd, plan_restore, write_version
from clew.documents.recreations import Recreated, RecreationPlan
from clew.errors import ClewError
from clew.prov.queries.targets import Target
from clew.redaction import CREDENTIALS, credential_check, open_readonly
from clew.store import Store

_PLAN_SECONDS = 3600.0
"""Time limit for planning a long chain of executions."""


def recreate(
    client: Client,
    text: str,
    *,
    to: str | None,
    overwrite: bool,
    dry_run: bool,
    network: bool,
    gpu: bool,
    say: Callable[[str], None],
) -> Recreated:
    asked: dict[str, Any] = {
        "target": text,
        "asker": caller_paths.describe_client(client.settings, text),
        "network": network,
        "gpu": gpu,
        "secrets": client.given_secrets,
    }
    with content_transfer.open_transfer_store(client.settings) as store:
        plan, sent = _planned(client, store, asked)
    found = Target(**plan["target"], keys=())
    below = None if to else foreign_cwd(client, found)
    aim = plan_restore(client, text, found, to, below)
    if dry_run:
        planned = parse(plan["plan"], RecreationPlan, client.server)
        return join_documents(aim, planned, dry_run=True)
    versions.check_overwrite(aim, overwrite=overwrite)
    answer = downloads.run_command(client.server, "recreate", asked, say, transfer=sent)
    result = parse(answer, RecreationPlan, client.server)
    if result.verdict == "identical":
        write_version(client, found, aim, below)
    return join_documents(aim, result, dry_run=False)


def _planned(
    client: Client, store: Store, asked: dict[str, Any]
) -> tuple[dict[str, Any], str | None]:
    """The plan, and the id of the transfer with the contents that were sent for it, if any."""
    brought: dict[str, str] = {}
    transfer: str | None = None
    asked["brought"] = brought
    while True:
        plan: dict[str, Any] = client.query("recreatable", seconds=_PLAN_SECONDS, **asked)
        present = {digest: path for digest, path, size in plan["sought"] if _is_present(path, size)}
        new = {
            digest: path
            for digest, path in present.items()
            if digest not in brought and _stored(store, path) == digest
        }
        if not new:
            break
        store.flush()
        transfer = content_transfer.send(client.server, store, new, transfer=transfer)
        brought |= new
    if "error" in plan:
        said = plan["error"]
        raise error_from(said["code"], said["message"], said["hint"], 404)
    return plan, transfer


def _is_present(path: str, size: int) -> bool:
    try:
        now = os.lstat(path)
    except OSError:
        return False
    if os.path.realpath(path) != path:
        return False  # `.aws/./credentials` would pass the check for credentials
    if not stat.S_ISREG(now.st_mode) or now.st_size != size:
        return False
    # never send a credential file, even if the server knows its digest
    return not credential_check(CREDENTIALS)(path, lambda: open_readonly(path))


def _stored(store: Store, path: str) -> str | None:
    try:
        return store.put_file(os.fsencode(path)).digest
    except (OSError, ClewError):
        return None
