"""Version and location of the server: for the web app, and for problem reports."""

import socket

import clew
from clew.db.display_name import name_database
from clew.documents.project.web_settings import ServerInfo
from clew.server.v1.dependencies import ServiceDep
from clew.server.v1.document_router import DocumentRouter

router = DocumentRouter(tags=["settings"])


@router.get("/server")
def get_server(service: ServiceDep) -> ServerInfo:
    """The version of Clew, the project, and where its records and content are."""
    directory = service.directory
    return ServerInfo(
        version=clew.__version__,
        project=str(directory.root),
        uid=directory.uid,
        machine=socket.gethostname(),
        database=name_database(directory.graph, service.settings.graph),
        store=str(directory.store),
        started=service.started,
    )
