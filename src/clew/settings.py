"""The environment, read once.

This is the only module that looks at environment variables on Clew's own behalf. Everything
else is handed a `Settings`. `docs/reference/settings.md` documents each field.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    project: Path | None
    """CLEW_PROJECT: the project to use instead of the one found by walking up."""
    graph: str | None
    """CLEW_GRAPH: a PostgreSQL address; without it the graph is `.clew/graph.db`."""
    server: str | None
    """CLEW_SERVER: the server that answers everything but `exec`."""
    token: str | None
    """CLEW_TOKEN: the bearer token for that server."""
    redact: tuple[str, ...]
    """CLEW_REDACT: more names (globs, comma-separated) of variables whose values are secret."""
    colour: bool
    """False when NO_COLOR is set to anything."""
    pager: str
    """CLEW_PAGER or PAGER: the command that shows long output on a terminal; empty if the terminal
    can only print (TERM=dumb)."""
    display: bool
    """Whether BROWSER, DISPLAY or WAYLAND_DISPLAY is set: a browser can be started."""
    state: Path
    """XDG_STATE_HOME/clew: what belongs to this user on this machine."""
    cache: Path
    """XDG_CACHE_HOME/clew: caches, which can be deleted."""
    config: Path
    """XDG_CONFIG_HOME/clew: the signing key, and the keys of known signers."""
    user_header: str | None = None
    """CLEW_USER_HEADER: the header in which a trusted gateway names the user of a request."""
    groups_header: str | None = None
    """CLEW_GROUPS_HEADER: the header with the groups of the user, separated by commas."""
    artifacts: str | None = None
    """CLEW_ARTIFACTS: the bucket, perhaps with a prefix, in which the tasks of pipelines on a
    cluster leave their artifacts."""
    image: str | None = None
    """CLEW_IMAGE: the image of Clew for the Pods of these tasks."""
    scheduler: str = ""
    """CLEW_SCHEDULER: the scheduler of those that are to run near their clients."""
    trace_pods: bool = True
    """CLEW_TRACE_PODS: `off` if the processes in these Pods are not to be recorded."""
    s3: Mapping[str, str] = field(default_factory=dict)
    """AWS_*: the S3 settings, by the names of these variables in lower case."""

    @property
    def owners(self) -> Path:
        """Which package owns which file."""
        return self.cache / "owners"


OWN = frozenset({"CLEW_PROJECT", "CLEW_GRAPH", "CLEW_SERVER", "CLEW_TOKEN"})
"""Clew's own variables: they say where a record goes and hold what lets one in there. They are not
recorded, and what a server starts does not get them."""

S3 = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ENDPOINT_URL",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_SKIP_SIGNATURE",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
)


def load(environ: Mapping[str, str] = os.environ) -> Settings:
    """Read the variables; an empty one counts as not set."""

    def value(name: str) -> str | None:
        return environ.get(name) or None

    def base(name: str, usual: str) -> Path:
        """One of the user's own directories. A relative one would be another in every directory,
        and does not count, as XDG wants it."""
        named = Path(value(name) or "")
        return named if named.is_absolute() else Path.home() / usual

    project = value("CLEW_PROJECT")
    dumb = value("TERM") == "dumb"
    return Settings(
        project=Path(project) if project else None,
        graph=value("CLEW_GRAPH"),
        server=value("CLEW_SERVER"),
        token=value("CLEW_TOKEN"),
        redact=tuple(p for p in environ.get("CLEW_REDACT", "").split(",") if p),
        colour=not value("NO_COLOR"),
        pager="" if dumb else value("CLEW_PAGER") or value("PAGER") or "less",
        display=any(map(value, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))),
        state=base("XDG_STATE_HOME", ".local/state") / "clew",
        cache=base("XDG_CACHE_HOME", ".cache") / "clew",
        config=base("XDG_CONFIG_HOME", ".config") / "clew",
        user_header=value("CLEW_USER_HEADER"),
        groups_header=value("CLEW_GROUPS_HEADER"),
        artifacts=value("CLEW_ARTIFACTS"),
        image=value("CLEW_IMAGE"),
        scheduler=value("CLEW_SCHEDULER") or "",
        trace_pods=(value("CLEW_TRACE_PODS") or "").lower() not in {"off", "0", "no", "false"},
        s3={name.lower(): found for name in S3 if (found := value(name))},
    )


def remove_own_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that are not Clew's own."""
    return {name: value for name, value in environ.items() if name not in OWN}


def list_trusted_users(environ: Mapping[str, str] = os.environ) -> set[int]:
    """The ids of the users whose projects are used: this one, root, and below `sudo` its caller."""
    caller = environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return {0, os.geteuid(), *({int(caller)} if caller.isdecimal() else ())}


def machine_id(settings: Settings) -> str:
    """The id of this machine in locators: that of /etc/machine-id, else one that is generated and
    kept."""
    try:
        found = Path("/etc/machine-id").read_text().strip()
    except OSError:
        found = ""
    if found:
        return found
    own = settings.state / "machine-id"
    if not own.exists():
        own.parent.mkdir(parents=True, exist_ok=True)
        draft = own.with_suffix(f".{os.getpid()}")
        draft.write_text(os.urandom(16).hex())
        try:
            os.link(draft, own)  # the first writer wins, whole or not at all
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return own.read_text().strip()
