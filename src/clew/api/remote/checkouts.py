"""Checkouts of a server's executions: written and inspected on this machine, run again there.

The directory is this machine's, and its state file says of which project it is a checkout: the
server's. Only chunks that the server lacks are uploaded; the server then runs the checkout like a
repeat.
"""

import re
from pathlib import Path

import msgspec

from clew.api.local import checkouts, notes
from clew.api.local.checkouts import CheckoutContents, CheckoutOwner
from clew.api.local.repeat import Say
from clew.api.remote import content_transfer, downloads
from clew.api.remote.client import Client, parse
from clew.documents import checkouts as documents
from clew.documents.checkouts import CheckoutStatus, MissingFile
from clew.documents.ids import Digest, ExecutionId, Uid
from clew.documents.repeats import Repeated
from clew.errors import Damaged
from clew.redaction import CREDENTIALS
from clew.replay.checkout import atomic_directory
from clew.replay.checkout.changes import find_changes
from clew.replay.checkout.working_tree import Checkout, TrackedFile, checkout_path

_ID = re.compile(r"e\d{1,15}")


class UploadedFile(msgspec.Struct):
    """A file of a checkout. Paths are texts, as Python has them where they are no UTF-8."""

    place: str
    path: str
    digest: Digest
    mode: int
    size: int
    mtime: int
    link: bool = False

    def read(self) -> TrackedFile:
        return TrackedFile.read(msgspec.structs.asdict(self))


class UploadedCheckout(msgspec.Struct):
    """A checkout, as it is sent to the server."""

    execution: Uid
    id: ExecutionId
    cwd: str
    files: list[UploadedFile]
    """The files as they were written to the checkout."""
    now: list[UploadedFile]

    def read(self) -> tuple[Checkout, dict[bytes, TrackedFile]]:
        found = Checkout(
            directory=Path(),
            project=Uid(""),
            root="",
            execution=self.execution,
            id=self.id,
            cwd=self.cwd,
            files=tuple(one.read() for one in self.files),
        )
        return found, {kept.place: kept for kept in (one.read() for one in self.now)}


def _owner(client: Client) -> CheckoutOwner:
    def kept_digests(execution: Uid, digests: set[str]) -> set[str]:
        return set(client.query("kept", execution=execution, digests=sorted(digests)))

    return CheckoutOwner(client.uid, str(client.root), served=True, kept_digests=kept_digests)


def describe_checkout(client: Client, text: str) -> CheckoutContents:
    found = client.query("checkout", id=text)
    if not _ID.fullmatch(str(found["id"])):  # a directory may be called so
        raise Damaged(f"the server sent an invalid id of an execution: {str(found['id'])[:100]!r}")
    files = tuple(map(TrackedFile.read, found["files"]))
    for kept in files:  # a place of its own choosing could be Clew's own file
        if kept.place != checkout_path(kept.path, found["cwd"]):
            shown = kept.place[:200].decode(errors="replace")
            raise Damaged(
                f"the server sent a wrong path for a file: {shown!r}",
                hint="do not trust the server",
            )
    missing = parse(found["missing"], tuple[MissingFile, ...], client.server)
    return CheckoutContents(**{**found, "files": files, "missing": missing})


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
        told = {
            "execution": found.execution,
            "id": found.id,
            "cwd": found.cwd,
            "files": [kept.as_json() for kept in found.files],
            "now": [kept.as_json() for kept in now.values()],
        }
        asked = {
            "checkout": told,
            "message": message,
            "network": network,
            "gpu": gpu,
            "quiet": quiet,
            "secrets": client.given_secrets,
        }
        answer = downloads.run_command(client.server, "commit", asked, say, transfer=sent)
        document = parse(answer, Repeated, client.server)
        checkouts.move_checkout(found, now, document.execution)
    return document
