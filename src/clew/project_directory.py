"""A project's directory: `.clew/`, found by walking up, as git does.

Contains names and the configuration. It does not know the contents of the graph or the store.
A project that is found by walking up may have been planted by someone else: in `/tmp`, or in a
repository that was cloned. So it is not used if another user owns it, nor if links lead from it to
where Clew would write. Its executions count as made elsewhere unless this user made or accepted it:
see `is_accepted`.
A project is made in a draft directory that is renamed into place, so it is there whole or not at
all.
"""

import os
import shlex
import shutil
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clew import disk_reserve
from clew.documents.ids import Uid
from clew.errors import ClewError, NoProject, NotAllowed
from clew.redaction import CREDENTIALS, list_credential_globs
from clew.settings import Settings, list_trusted_users

NAME = ".clew"
CHECKOUT = ".clew-checkout"
"""In a directory that an execution's files were checked out to: says of what, and whose."""

_CONFIG = """\
# A Clew project. `clew exec -- COMMAND` records here; see docs/reference/settings.md.
uid = "{uid}"

[record]
# Paths (globs) whose bytes are not stored; their digests still are.
exclude = []
# Credential files, whose bytes are not stored, either. Uncomment it to replace the built-in list,
# which docs/reference/redaction.md shows.
# credentials = []
# How much of stdout and of stderr is kept, in bytes; beyond it the digest alone.
stream_limit = 67108864

# What two executions may differ in and still be equivalent; see docs/reference/comparing.md.
# [[compare.rules]]
# name = "run-id"
# paths = ["*/report.json"]
# ignore = '"run_id": "[0-9a-f]+"'
"""


@dataclass(frozen=True)
class Ignore:
    """A rule that excludes differences from comparisons."""

    name: str
    paths: tuple[str, ...]
    pattern: str


@dataclass(frozen=True)
class ProjectDirectory:
    """One project's `.clew/`."""

    root: Path
    """The directory that holds `.clew/`."""
    uid: Uid
    exclude: tuple[str, ...]
    stream_limit: int
    credentials: tuple[str, ...] = CREDENTIALS
    """Globs of credential files, whose bytes are not stored, either."""
    ignore: tuple[Ignore, ...] = ()

    def credential_files(self, environ: Mapping[str, str], cwd: Path) -> tuple[str, ...]:
        """Globs of the credential files of a command with these variables."""
        return list_credential_globs(self.credentials, environ, os.fspath(cwd))

    @property
    def path(self) -> Path:
        return self.root / NAME

    @property
    def graph(self) -> Path:
        return self.path / "graph.db"

    @property
    def store(self) -> Path:
        return self.path / "store"

    @property
    def cache(self) -> Path:
        return self.path / "cache"

    @property
    def spool(self) -> Path:
        return self.path / "spool"

    @property
    def unsent(self) -> Path:
        return self.path / "unsent"

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def pending(self) -> Path:
        return self.path / "pending"

    @property
    def token(self) -> Path:
        return self.path / "token"

    @property
    def key(self) -> bytes:
        """The project's secret key; empty if it cannot be read."""
        try:
            return self.token.read_bytes()
        except OSError:
            return b""


def clew_paths(directory: ProjectDirectory, settings: Settings) -> tuple[bytes, ...]:
    """Prefixes of Clew's own paths, which records leave out. The path of the project has no links;
    the user's cache may be reached through some."""
    cache = os.fsencode(settings.owners)
    return (os.fsencode(directory.path) + b"/", cache, os.path.realpath(cache))


def find(start: Path, settings: Settings) -> ProjectDirectory:
    """The project of `start`: the one CLEW_PROJECT names, else the nearest one upwards."""
    if settings.project is not None:
        if (settings.project / NAME).is_dir():
            return _open_checked(settings.project, settings)
        raise NoProject(
            f"CLEW_PROJECT names {settings.project}, which is not a project",
            hint=f"clew init {settings.project}",
        )
    for directory in (start, *start.parents):
        for root in (directory, _root_of_checkout(directory)):
            if root is not None and _is_project(root):
                _check_owner(root)
                return _open_checked(root, settings)
    raise NoProject(f"no project in {start} or any directory above it", hint="clew init")


def find_here(settings: Settings) -> ProjectDirectory | None:
    """The project of the current directory; None where there is none."""
    try:
        return find(Path.cwd(), settings)
    except (ClewError, OSError):
        return None


def is_in_checkout(start: Path) -> bool:
    """Whether `start` lies in a checkout of an execution."""
    start = start.resolve()
    return any((directory / CHECKOUT).is_file() for directory in (start, *start.parents))


def _root_of_checkout(directory: Path) -> Path | None:
    """The project whose files were checked out to this directory."""
    import json

    try:
        return Path(json.loads((directory / CHECKOUT).read_text())["root"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # not a checkout; a damaged one is reported by the command that needs it


def _is_project(directory: Path) -> bool:
    try:
        return (directory / NAME / "config.toml").is_file()
    except PermissionError as error:
        raise NotAllowed(
            f"{directory / NAME} is not yours to read", hint="ask its owner, or set CLEW_PROJECT"
        ) from error


def _check_owner(root: Path) -> None:
    """Refuse a project of another user, who could read what is recorded there and choose what is
    repeated."""
    owner = (root / NAME).stat().st_uid
    if owner not in list_trusted_users():
        try:
            name = (root / NAME).owner()
        except KeyError:
            name = str(owner)
        raise NotAllowed(
            f"the project in {root} belongs to {name}",
            hint=f"if you trust {name}, name it: CLEW_PROJECT={shlex.quote(str(root))}",
        )


def init(root: Path, settings: Settings, *, trust: bool = False) -> ProjectDirectory:
    """Make a project in `root`, or open the one that is there; `trust`: accept that."""
    exists = (root / NAME / "config.toml").is_file()
    directory = create(root)
    try:
        if trust or not exists:
            accept(directory, settings)
        else:
            _open_checked(root, settings)
    except OSError as error:
        if trust:
            raise NotAllowed(
                f"cannot write to {settings.state}: {error.strerror}",
                hint="XDG_STATE_HOME names a directory that you may write",
            ) from error
    return directory


def create(root: Path) -> ProjectDirectory:
    """Make a project in `root`; one that is there already is opened as it is."""
    if (root / NAME / "config.toml").is_file():
        _check_owner(root)
        return _open(root)
    draft = root / f"{NAME}.{os.urandom(4).hex()}"
    try:
        root.mkdir(parents=True, exist_ok=True)
        draft.mkdir(mode=0o700)
        keep_from_git(draft)
        for name in ("store", "cache", "spool"):
            (draft / name).mkdir()
        (draft / "config.toml").write_text(_CONFIG.format(uid=os.urandom(16).hex()))
        token = os.open(draft / "token", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(token, "w") as file:
            file.write(os.urandom(32).hex() + "\n")
        disk_reserve.make(draft)
        draft.rename(root / NAME)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        if (root / NAME / "config.toml").is_file():  # another process made it meanwhile
            return _open(root)
        raise NotAllowed(
            f"cannot make a project in {root}: {error.strerror}",
            hint="clew init DIR, with a directory you may write",
        ) from error
    return _open(root)


def is_accepted(directory: ProjectDirectory, settings: Settings) -> bool:
    """Whether this user made the project, or accepted it with `clew init --trust`.

    The user's state directory has a file named by the digest of the project's token: an
        attacker who hands over a project does not know a token that is accepted there."""
    return bool(directory.key) and os.path.exists(_acceptance(directory, settings))


def accept(directory: ProjectDirectory, settings: Settings) -> None:
    """Let the executions of the project count as this user's own."""
    file = _acceptance(directory, settings)
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(f"{directory.root}\n", errors="surrogateescape")


def _acceptance(directory: ProjectDirectory, settings: Settings) -> Path:
    from blake3 import blake3  # `clew --help` loads this module

    return settings.state / "projects" / blake3(directory.key).hexdigest(length=16)


def keep_from_git(directory: Path) -> None:
    """Make Git ignore the directory: `git add -A` would publish the token and the record."""
    with suppress(FileExistsError), open(directory / ".gitignore", "x") as file:
        file.write("*\n")


_WRITTEN = (
    *("cache", "graph.db", "log", "pending", "programs", "spool", "token", "unsent"),
    *("volumes", "workloads"),
)


def _open_checked(root: Path, settings: Settings) -> ProjectDirectory:
    """Open a project. In one that this user did not accept, refuse links: a store that leads to
    another project's would be emptied by `clew gc`. Its settings cannot have credentials stored."""
    directory = _open(root)
    if not is_accepted(directory, settings):
        directory = replace(directory, credentials=(*CREDENTIALS, *directory.credentials))
        for place in (NAME, *(f"{NAME}/{name}" for name in _list(directory.path))):
            for name in _list(root / place):
                _refuse_link(root / place / name)
    return directory


def _list(place: Path) -> list[str]:
    try:
        return os.listdir(place)
    except OSError:  # a file, or not ours to read
        return []


def _refuse_link(path: Path) -> None:
    if os.path.islink(path):
        raise NotAllowed(
            f"{path} is a link: Clew did not make it",
            hint="this directory may be malicious; clew init in another one",
        )


def _open(root: Path) -> ProjectDirectory:
    for name in _WRITTEN:  # what is left in the spool is removed, wherever it leads
        _refuse_link(root / NAME / name)
    config = root / NAME / "config.toml"
    try:
        values = tomllib.loads(config.read_text())
        record = values.get("record", {})
        return ProjectDirectory(
            root=root.resolve(),
            uid=Uid(str(values["uid"])),
            exclude=_globs(record, "exclude", ()),
            credentials=_globs(record, "credentials", CREDENTIALS),
            stream_limit=int(record.get("stream_limit", 64 << 20)),
            ignore=tuple(map(_ignore, values.get("compare", {}).get("rules", ()))),
        )
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise ClewError(
            f"{config} cannot be read: {error}", hint="repair it, or restore it from a copy"
        ) from error


def _globs(record: dict[str, Any], name: str, default: tuple[str, ...]) -> tuple[str, ...]:
    found = record.get(name, default)
    if isinstance(found, str):
        raise ValueError(f"record.{name} is no list")
    return tuple(map(str, found))


def _ignore(rule: dict[str, Any]) -> Ignore:
    missing = {"name", "paths", "ignore"} - rule.keys()
    if missing or isinstance(rule["paths"], str):
        wrong = ", ".join(sorted(missing)) or "paths as a list"
        raise ValueError(f"a rule of [[compare.rules]] lacks {wrong}")
    return Ignore(str(rule["name"]), tuple(map(str, rule["paths"])), str(rule["ignore"]))
