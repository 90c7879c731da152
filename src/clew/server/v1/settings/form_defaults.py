"""The administrator's defaults of the notebook form: where they are, and what is wrong there."""

from clew.documents.project.web_settings import FormDefaultsFile
from clew.server.v1.dependencies import BackendDep, ServiceDep
from clew.server.v1.document_router import DocumentRouter

router = DocumentRouter(tags=["settings"])


@router.get("/form-defaults")
def get_form_defaults(service: ServiceDep, backend: BackendDep) -> FormDefaultsFile:
    """The file `spawner_ui_config.yaml` as it is now."""
    return FormDefaultsFile(
        path=str(service.spawner_file),
        exists=service.spawner_file.exists(),
        content=service.spawner.text,
        error=service.spawner.error,
    )
