"""The response of the REST API to a request that fails."""

from clew.documents.document import Document


class ProblemDetails(Document, frozen=True, kw_only=True):
    """RFC 9457; `code` is one of Clew's error codes, `detail` what to do next."""

    type: str
    title: str
    status: int
    code: str
    detail: str
