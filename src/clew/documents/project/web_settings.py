"""The documents of the web app's settings."""

from datetime import datetime
from typing import Literal

from clew.documents.document import Document


class AccessToken(Document, frozen=True, kw_only=True):
    """A personal access token, without the token itself."""

    id: str
    name: str
    created: datetime
    expires: datetime
    expired: bool
    last_used: datetime | None
    """To the minute."""
    scope: Literal["all", "observe"]
    """What it permits: everything that tokens do, or to send what a cluster's agent observes."""
    kubernetes_user: str | None
    """On a cluster: the user whose namespaces it reads; null: none."""


class AccessTokens(Document, frozen=True, kw_only=True):
    tokens: tuple[AccessToken, ...]
    """Newest first."""
    may_choose_user: bool
    """Whether a new token can be for any user of the cluster. If not, there is no cluster, or a
    gateway says who makes the token."""


class NewAccessToken(Document, frozen=True, kw_only=True):
    """A token that was just made: only this response has it."""

    token: str
    details: AccessToken


class RemoteInfo(Document, frozen=True, kw_only=True):
    """A named place that executions are pushed to and pulled from."""

    name: str
    url: str
    default: bool


class RemoteList(Document, frozen=True, kw_only=True):
    remotes: tuple[RemoteInfo, ...]


class RemoteCheck(Document, frozen=True, kw_only=True):
    """Whether the server can read a remote, and what is there."""

    ok: bool
    executions: int | None
    """How many are there; null: nothing is there yet, and the first push makes the remote."""
    error: str | None
    hint: str | None


class FormDefaultsFile(Document, frozen=True, kw_only=True):
    """The administrator's `spawner_ui_config.yaml`."""

    path: str
    """Its path on the server's machine; it need not exist."""
    exists: bool
    content: str
    """The text of the file; if it does not exist, the built-in defaults."""
    error: str | None
    """Why the file is not in use."""


class ServerInfo(Document, frozen=True, kw_only=True):
    """The server itself."""

    version: str
    project: str
    """The project's directory on the server's machine."""
    uid: str
    machine: str
    """The server's host name."""
    database: str
    """`SQLite` or `PostgreSQL`, and where it is, without a password."""
    store: str
    started: datetime
