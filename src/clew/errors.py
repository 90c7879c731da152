"""The one exception tree.

    ClewError
    ├── UsageError          usage             2    invalid arguments
    │   └── SecretsNeeded   secrets-needed    2    a repeat needs values that are not recorded
    ├── NotAllowed          not-allowed       4    permissions, or a prompt that was refused
    │   └── Rejected        rejected          4    a record from elsewhere makes forbidden claims
    ├── NotFound            not-found         5    unknown id, path or version
    │   ├── NoProject       no-project        5    no `.clew` here or above
    │   └── NoContent       no-content        5    the version is known, its bytes were never stored
    ├── Damaged             damaged           3    a check found bytes that are not what they say
    ├── Exists              exists            1    the name is taken
    ├── Busy                busy              1    another process holds what is needed
    ├── Conflict            conflict          1    it was changed since it was read, or is in use
    ├── Unavailable         unavailable       1    what runs notebooks and volumes does not answer
    ├── NoDatabase          no-database       1    the graph's database does not answer
    ├── Full                disk-full         1    no room left; what was not written is not there
    └── RecordingFailed     recording-failed  125  Clew's own failure while running a command
        ├── CannotExecute   not-executable    126
        └── NoSuchCommand   no-such-command   127

Every error a user can meet carries a stable code, an exit status, an HTTP status, one
sentence, and a hint: the next command to run. A traceback means a bug.
"""

from collections.abc import Iterable
from typing import Any

LONGEST_TEXT = 500
"""Text from outside is cut to this before it enters an error: messages are read by people."""

MAKE_ROOM = "clew gc frees what was forgotten, clew rm ID forgets more; both work on a full disk"
"""The hint of a full disk."""


class ClewError(Exception):
    """Base of everything Clew raises on purpose."""

    code = "failed"
    exit_status = 1
    http_status = 500

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message[:LONGEST_TEXT])
        self.message = message[:LONGEST_TEXT]
        self.hint = hint[:LONGEST_TEXT]

    def as_json(self) -> dict[str, dict[str, Any]]:
        return {"error": {"code": self.code, "message": self.message, "hint": self.hint}}


class UsageError(ClewError):
    code = "usage"
    exit_status = 2
    http_status = 400


class SecretsNeeded(UsageError):
    """`names`: of the secrets, so that a program can ask the user for them."""

    code = "secrets-needed"

    def __init__(self, message: str, *, hint: str = "", names: Iterable[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.names = tuple(names)

    def as_json(self) -> dict[str, dict[str, Any]]:
        error = super().as_json()["error"]
        return {"error": {**error, "secrets": list(self.names)}}


class Full(ClewError):
    code = "disk-full"
    http_status = 507


class NotAllowed(ClewError):
    code = "not-allowed"
    exit_status = 4
    http_status = 403


class Rejected(NotAllowed):
    code = "rejected"
    http_status = 409


class NotFound(ClewError):
    code = "not-found"
    exit_status = 5
    http_status = 404


class NoProject(NotFound):
    code = "no-project"


class NoContent(NotFound):
    code = "no-content"


class Damaged(ClewError):
    code = "damaged"
    exit_status = 3
    http_status = 500


class Exists(ClewError):
    code = "exists"
    http_status = 409


class Busy(ClewError):
    code = "busy"
    http_status = 409


class Conflict(ClewError):
    code = "conflict"
    http_status = 409


class Unavailable(ClewError):
    code = "unavailable"
    http_status = 503


class NoDatabase(ClewError):
    code = "no-database"
    http_status = 503


class RecordingFailed(ClewError):
    code = "recording-failed"
    exit_status = 125


class CannotExecute(RecordingFailed):
    code = "not-executable"
    exit_status = 126


class NoSuchCommand(RecordingFailed):
    code = "no-such-command"
    exit_status = 127
