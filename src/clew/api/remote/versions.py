"""Read file versions that a server stores, and write them on this machine."""

import os
from collections.abc import Iterator

from clew.api.local import versions
from clew.api.remote import caller_paths, downloads
from clew.api.remote.client import Client
from clew.api.remote.messages import StoredVersion
from clew.documents.files.versions import Restored, Version, Versions
from clew.documents.ids import Digest
from clew.prov.locators import file_locator, path_json
from clew.prov.queries.targets import Target
from clew.settings import machine_id
from clew.store import content_reader


def list_versions(client: Client, path: bytes) -> list[Version]:
    locator = file_locator(machine_id(client.settings), os.path.realpath(path))
    return [*client.get("versions", Versions, locator=locator).versions]


def read_chunks(client: Client, version: str) -> Iterator[bytes]:
    with downloads.open_content(client, version) as (digest, pieces):
        yield from downloads.verify(pieces, digest)


def restore(
    client: Client, version: str, *, to: str | None, overwrite: bool, dry_run: bool
) -> Restored:
    target = client.query_target("version", StoredVersion, version).as_target()
    below = None if to else find_foreign_cwd(client, target)
    plan = plan_restore(client, version, target, to, below)
    if not dry_run:
        versions.check_overwrite(plan, overwrite=overwrite)
        write_version(client, target, plan, below)
    return plan


def find_foreign_cwd(client: Client, target: Target) -> str:
    """The working directory of the execution that a version belongs to. Every version of a server
    counts as made elsewhere: only the user decides where on this machine it is written."""
    if target.execution is None:
        return "/"
    return client.execution(f"e{int(target.execution)}").cwd or "/"


def plan_restore(
    client: Client, text: str, target: Target, to: str | None, below: str | None
) -> Restored:
    """Where the version that `text` names would be written, and what is there now. The server's
    claim that it stores the present content counts only for a file that the user named."""
    assert target.digest is not None
    assert target.size is not None
    path = versions.choose_destination(target, to, below)
    now = caller_paths.hash_current_file(path)
    replaced = None if now == target.digest else now
    named = to is not None or os.fsdecode(path) in caller_paths.list_named_files(text)
    return Restored(
        version=target.label,
        **path_json(path),
        digest=target.digest,
        size=target.size,
        replaces=replaced,
        loses=replaced is not None and not (named and is_stored(client, replaced)),
    )


def is_stored(client: Client, digest: Digest) -> bool:
    asked = {"contents": [digest]}
    return not client.server.json("POST", "/api/v1/content/missing", asked)["contents"]


def write_version(client: Client, target: Target, plan: Restored, below: str | None) -> None:
    assert target.digest is not None
    pieces = read_chunks(client, target.digest)
    path = plan.place
    versions.write_file(
        target,
        path,
        lambda mode: content_reader.restore_file(
            pieces, path, mode=mode, mtime=target.mtime, sync=True
        ),
        below=below,
    )
