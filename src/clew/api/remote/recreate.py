"""Recreate a file on the server, and write it here.

The server lists the contents it needs. The client sends those that it has unchanged on its disk.
"""

import os
import stat
from collections.abc import Callable

from msgspec import structs

from clew.api.delivery.http_client import error_from
from clew.api.local import versions
from clew.api.local.recreation.recreate import join_documents
from clew.api.remote import caller_paths, content_transfer, downloads
from clew.api.remote.client import Client
from clew.api.remote.messages import Problem, Recreatable, RecreateCommand
from clew.api.remote.versions import find_foreign_cwd, plan_restore, write_version
from clew.documents.files.recreations import Recreated, RecreationPlan
from clew.errors import ClewError
from clew.prov.queries.targets import Target
from clew.redaction import CREDENTIALS, make_credential_check, open_readonly
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
    command = RecreateCommand(
        target=text,
        asker=caller_paths.describe_client(client.settings, text),
        network=network,
        gpu=gpu,
        secrets=client.given_secrets,
    )
    with content_transfer.open_transfer_store(client.settings) as store:
        found, planned, sent = _plan(client, store, command)
    below = None if to else find_foreign_cwd(client, found)
    aim = plan_restore(client, text, found, to, below)
    if dry_run:
        return join_documents(aim, planned, dry_run=True)
    versions.check_overwrite(aim, overwrite=overwrite)
    result = downloads.run_command(client, command, RecreationPlan, say, transfer=sent)
    if result.verdict == "identical":
        write_version(client, found, aim, below)
    return join_documents(aim, result, dry_run=False)


def _plan(
    client: Client, store: Store, command: RecreateCommand
) -> tuple[Target, RecreationPlan, str | None]:
    """The version, how it will be made, and the id of the transfer with the contents that were sent
    for it, if any. `command.brought` gets the files that were sent."""
    transfer: str | None = None
    while True:
        answer = client.query(
            "recreatable", Recreatable, structs.asdict(command), seconds=_PLAN_SECONDS
        )
        present = {digest: path for digest, path, size in answer.sought if _is_present(path, size)}
        new: dict[str, str] = {
            digest: path
            for digest, path in present.items()
            if digest not in command.brought and _stored(store, path) == digest
        }
        if not new:
            break
        store.flush()
        transfer = content_transfer.send(client.server, store, new, transfer=transfer)
        command.brought |= new
    if answer.target is None or answer.plan is None:
        problem = answer.error or Problem("no-content", f"{command.target} is not available", "")
        raise error_from(problem.code, problem.message, problem.hint, 404)
    return answer.target.as_target(), answer.plan, transfer


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
    return not make_credential_check(CREDENTIALS)(path, lambda: open_readonly(path))


def _stored(store: Store, path: str) -> str | None:
    try:
        return store.put_file(os.fsencode(path)).digest
    except (OSError, ClewError):
        return None
