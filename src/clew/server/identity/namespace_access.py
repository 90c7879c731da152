"""Which namespaces of the cluster the caller of a request may read.

Kubernetes decides, by an access review: who may list the Pods of a namespace may see its lineage.
The user is the one that a trusted gateway names in a header (`CLEW_USER_HEADER`), else the one for
whom an access token was made. The server's own account counts for its own token and sessions, if
there is no such gateway. Nobody else reads anything.
"""

from typing import NamedTuple

from fastapi import Request

from clew.errors import NotAllowed
from clew.prov.graph import MayRead
from clew.server.server_state import Service
from clew.settings import Settings

LONGEST_NAME = 1000
MOST_GROUPS = 200


class ClusterUser(NamedTuple):
    """None: the account of the server."""

    name: str | None = None
    groups: tuple[str, ...] = ()


def namespaces_of(service: Service, request: Request) -> MayRead | None:
    """None: there is no cluster, and nothing is withheld."""
    backend = service.backend
    if backend is None or backend.kind != "cluster":
        return None
    users = _find_users(service.settings, request)
    return lambda namespace: (
        bool(users)
        and all(backend.may_read(namespace, user=user.name, groups=user.groups) for user in users)
    )


def choose_token_user(service: Service, request: Request, wanted: str | None) -> str | None:
    """The user of a new access token. Behind a gateway everybody makes tokens for themselves."""
    settings = service.settings
    if settings.user_header is None:
        return wanted
    user = _find_named_user(settings, request)
    own = None if user is None else user.name
    if wanted not in (None, own):
        raise NotAllowed(
            "an access token for another user cannot be made", hint="leave kubernetes_user out"
        )
    return own


def may_choose_token_user(service: Service) -> bool:
    """Whether `choose_token_user` takes any user, and it matters."""
    on_cluster = service.backend is not None and service.backend.kind == "cluster"
    return on_cluster and service.settings.user_header is None


def _find_users(settings: Settings, request: Request) -> tuple[ClusterUser, ...]:
    """All of these must be allowed to read a namespace; if there are none, nothing is read."""
    if settings.user_header is not None and settings.user_header in request.headers:
        named = _find_named_user(settings, request)
        return () if named is None else (named,)
    token, server = request.state.access_token, ClusterUser()
    if token is None:
        return () if settings.user_header is not None else (server,)
    if token.kubernetes_user is None:
        return ()
    user = ClusterUser(token.kubernetes_user)
    # The one who made it may have no more rights than the server.
    return (user,) if settings.user_header is not None else (user, server)


def _find_named_user(settings: Settings, request: Request) -> ClusterUser | None:
    assert settings.user_header is not None
    names = request.headers.getlist(settings.user_header)
    if len(names) != 1 or not 0 < len(names[0]) <= LONGEST_NAME:
        return None
    groups: tuple[str, ...] = ()
    if settings.groups_header is not None:
        given = ",".join(request.headers.getlist(settings.groups_header)).split(",")
        groups = tuple(filter(None, map(str.strip, given)))[:MOST_GROUPS]
    return ClusterUser(names[0], groups)
