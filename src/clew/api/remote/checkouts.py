"""Checkouts of a server's executions: written and inspected on this machine, run again there.

The directory is this machine's, and its state file says of which project it is a checkout: the
server's. Only chunks that the server lacks are uploaded; the server then runs the checkout like a
repeat.
"""

import re
from pathlib import Path

from clew.api.local import checkouts, notes
from clew.api.local.checkouts import CheckoutContents, CheckoutOwner
from clew.api.local.repeat import Say
from clew.api.remote import content_transfer, downloads
from clew.api.remote.client import Client
from clew.api.remote.messages import (
    CheckoutFile,
    CheckoutListing,
    CommitCommand,
    SentCheckout,
)
from clew.documents.executions.repeats import Repeated
from clew.documents.files import checkouts as documents
from clew.documents.files.checkouts import CheckoutStatus
from clew.documents.ids import Uid
from clew.errors import Damaged
from clew.redaction import CREDENTIALS
from clew.replay.checkout import atomic_directory
from clew.replay.checkout.changes import find_changes
from clew.replay.checkout.working_tree import checkout_path

_ID = re.compile(r"e\d{1,15}")


def _owner(client: Client) -> CheckoutOwner:
    def kept_digests(execution: Uid, digests: set[str]) -> set[str]:
        return client.query("kept", set[str], {"execution": execution, "digests": sorted(digests)})

    return CheckoutOwner(client.uid, str(client.root), served=True, kept_digests=kept_digests)


def describe_checkout(client: Client, text: str) -> CheckoutContents:
    found = client.query("checkout", CheckoutListing, {"id": text})
    if not _ID.fullmatch(found.id):  # it may be the name of a directory
        raise Damaged(f"the server sent an invalid id of an execution: {found.id[:100]!r}")
    files = tuple(file.read() for file in found.files)
    for kept in files:  # a path that the server chose could be one of Clew's own files
        if kept.place != checkout_path(kept.path, found.cwd):
            shown = kept.place[:200].decode(errors="replace")
            raise Damaged(
                f"the server sent a wrong path for a file: {shown!r}",
                hint="do not trust the server",
            )
    return CheckoutContents(found.execution, found.id, found.cwd, files, found.missing)


def checkout(client: Client, text: str, directory: Path | None) -> documents.Checkout:
    found = describe_checkout(client, text)
    with content_transfer.open_transfer_store(client.settings) as store:
        content_transfer.fetch(client.server, store, (kept.digest for kept in found.files))
        return checkouts.write_checkout(_owner(client), store, found, text, directory)


def status(client: Client, directory: Path | None) -> CheckoutStatus:
    found = checkouts.find(_owner(client), directory)
    with content_transfer.open_transfer_store(client.settings) as store:
        return checkouts.status_of(found, store, CREDENTIALS)


def commit(
    client: Client,
    directory: Path | None,
    *,
    message: str | None,
    network: bool,
    gpu: bool,
    quiet: bool,
    say: Say,
) -> Repeated:
    notes.check_notes({"message": message or ""})
    found = checkouts.find(_owner(client), directory)
    with (
        atomic_directory.lock_directory(found.directory),
        content_transfer.open_transfer_store(client.settings) as store,
    ):
        now = checkouts.store_files(found, store, CREDENTIALS, say)
        if not find_changes(found, now):
            return checkouts.unchanged_result(client.execution(found.execution), found)
        sent = content_transfer.send(client.server, store, (kept.digest for kept in now.values()))
        command = CommitCommand(
            checkout=SentCheckout(
                execution=found.execution,
                id=found.id,
                cwd=found.cwd,
                files=[CheckoutFile.of(kept) for kept in found.files],
                now=[CheckoutFile.of(kept) for kept in now.values()],
            ),
            message=message,
            network=network,
            gpu=gpu,
            quiet=quiet,
            secrets=client.given_secrets,
        )
        document = downloads.run_command(client, command, Repeated, say, transfer=sent)
        checkouts.move_checkout(found, now, document.execution)
    return document
