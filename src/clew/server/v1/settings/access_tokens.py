"""Personal access tokens: list, create, revoke.

Only a session of the web app or the project's own token may: a token that leaked must not make
another one that lives longer.
"""

from datetime import UTC, datetime
from typing import Annotated, Literal

from anyio import from_thread
from fastapi import Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from clew.documents.project.web_settings import AccessToken, AccessTokens, NewAccessToken
from clew.server.catalogue import access_tokens
from clew.server.catalogue.access_tokens import StoredToken
from clew.server.identity.access_tokens import new_token
from clew.server.identity.namespace_access import (
    LONGEST_NAME,
    choose_token_user,
    may_choose_token_user,
)
from clew.server.v1.dependencies import Owner, ServiceDep
from clew.server.v1.document_router import DocumentRouter

MAX_DAYS = 365
_DAY_SECONDS = 24 * 3600

router = DocumentRouter(tags=["settings"], dependencies=[Owner])


class TokenRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[
        str,
        StringConstraints(
            min_length=1, max_length=100, pattern=r"^[^\x00-\x1f]*[^\x00-\x20][^\x00-\x1f]*$"
        ),
        Field(description="What it is for.", examples=["CI"]),
    ]
    days: Annotated[int, Field(ge=1, le=MAX_DAYS, description="How long it is valid.")] = 30
    scope: Annotated[
        Literal["all", "observe"],
        Field(description="`observe`: it can only send what an agent of a cluster observes."),
    ] = "all"
    kubernetes_user: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=LONGEST_NAME,
            pattern=r"^[!-~]*$",
            description="On a cluster: the token reads the namespaces that this user may read;"
            " without it, none. Behind a gateway that names the user, it is that user.",
        ),
    ] = None


@router.get("/tokens")
def list_access_tokens(service: ServiceDep) -> AccessTokens:
    """The names and times of all access tokens, also of those that have expired."""
    with service.graph() as graph:
        found = access_tokens.list_tokens(graph)
    return AccessTokens(
        tokens=tuple(map(_describe, found)), may_choose_user=may_choose_token_user(service)
    )


@router.post("/tokens", status_code=201)
def create_access_token(
    request: Request, service: ServiceDep, wanted: TokenRequest
) -> NewAccessToken:
    """Create an access token. Only this response contains the token."""
    token, stored = new_token(
        wanted.name.strip(),
        wanted.days * _DAY_SECONDS,
        scope=wanted.scope,
        kubernetes_user=choose_token_user(service, request, wanted.kubernetes_user),
    )
    with service.graph() as graph:
        access_tokens.add_token(graph, stored)
    from_thread.run(request.app.state.access_tokens.read_again)
    return NewAccessToken(token=token, details=_describe(stored))


@router.delete("/tokens/{id}", status_code=204, response_class=Response)
def revoke_access_token(
    request: Request,
    service: ServiceDep,
    id: Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")],  # noqa: A002
) -> Response:
    """Delete an access token: it is refused at once here, and within two seconds by other servers
    that share the database."""
    with service.graph() as graph:
        access_tokens.delete_token(graph, id)
    from_thread.run(request.app.state.access_tokens.read_again)
    return Response(status_code=204)


def _describe(token: StoredToken) -> AccessToken:
    used = None if token.last_used is None else datetime.fromtimestamp(token.last_used, UTC)
    expires = datetime.fromtimestamp(token.expires, UTC)
    return AccessToken(
        id=token.id,
        name=token.name,
        created=datetime.fromtimestamp(token.created, UTC),
        expires=expires,
        expired=expires <= datetime.now(UTC),
        last_used=used,
        scope="observe" if token.scope == access_tokens.OBSERVE else "all",
        kubernetes_user=token.kubernetes_user,
    )
