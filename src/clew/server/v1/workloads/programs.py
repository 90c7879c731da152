"""Install the programs that notebooks and TensorBoards need, on one machine."""

from clew.documents.workloads.workload import ProgramInstallation
from clew.errors import NotFound
from clew.server.v1.dependencies import BackendDep
from clew.server.v1.document_router import DocumentRouter
from clew.workloads.backend import Backend
from clew.workloads.programs import Programs

router = DocumentRouter(tags=["workloads"])


@router.get("/programs/{name}")
def get_program(backend: BackendDep, name: str) -> ProgramInstallation:
    """Whether a program is installed, and how its installation is going."""
    return _programs(backend).get(name)


@router.post("/programs/{name}/install", status_code=202)
def install_program(backend: BackendDep, name: str) -> ProgramInstallation:
    """Begin to install a program, unless it is installed or being installed."""
    return _programs(backend).install(name)


def _programs(backend: Backend) -> Programs:
    if backend.programs is None:
        raise NotFound("on a cluster, images contain the programs", hint="choose an image")
    return backend.programs
