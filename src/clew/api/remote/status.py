"""The status of a server's project. Files are those of this machine, and are compared here."""

from base64 import b64decode

from clew import project_directory as directories
from clew.api.local.project import LocalProject
from clew.api.local.status import check_files, find_unpushed, find_unsent
from clew.api.remote import content_transfer
from clew.api.remote.client import Client
from clew.api.remote.share import RemoteEndpoint
from clew.documents.ids import ExecutionId
from clew.documents.project.status import ProjectStatus, ServedFile, ServedStatus, Unpushed
from clew.prov.queries.tracked_files import TrackedFile
from clew.settings import machine_id


def get_status(client: Client) -> ProjectStatus:
    served = client.get("status", ServedStatus, machine=machine_id(client.settings))
    tracked = list(filter(None, map(_read_file, served.files)))
    with content_transfer.open_transfer_store(client.settings) as store:
        files = check_files(tracked, store, others=served.other_files)
    executions = client.executions()
    remote: Unpushed | None = None
    unsent: tuple[ExecutionId, ...] | None = ()
    if (here := directories.find_here(client.settings)) is not None:
        remote = find_unpushed(RemoteEndpoint(client), executions, here, client.settings)
        with LocalProject(here, client.settings) as project:
            unsent = find_unsent(project)
    return ProjectStatus(
        project=served.project,
        uid=served.uid,
        executions=len(executions),
        store=served.store,
        remote=remote,
        unsent=unsent,
        files=files,
    )


def _read_file(file: ServedFile) -> TrackedFile | None:
    """None if its path is malformed."""
    try:
        path = b64decode(file.path_b64) if file.path_b64 else file.path.encode()
    except ValueError:
        return None
    return TrackedFile(path, file.execution, file.digest, file.size)
