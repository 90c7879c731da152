"""How values of the graph look in answers."""

import time

from clew.documents.ids import ExecutionId, Locator, ProcessId, RunId, Uid, VersionId
from clew.prov.locators import PathFields, path_json, path_of

STREAM = "stream://"
NETWORK = ("tcp://", "udp://", "unix:", "http://", "https://", "ftp://")


def format_time(at: int | None) -> str | None:
    """Nanoseconds since the epoch as ISO 8601 in UTC."""
    if at is None:
        return None
    seconds, rest = divmod(at, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1000:06}Z"


def path_fields(locator: str) -> PathFields:
    """A locator as `path`: a file's path, a stream's name (`stdout`), else the locator itself."""
    path = path_of(locator)
    if path is not None:
        return path_json(path)
    if locator.startswith(STREAM):
        return {"path": locator.rsplit("/", 1)[-1]}
    return {"path": locator}


def locator_kind(locator: Locator) -> str:
    """The kind of node for a version at this locator."""
    if locator.startswith(STREAM):
        return "stream"
    if locator.startswith(NETWORK):
        return "network"
    return "file"


def execution_id(number: int) -> ExecutionId:
    return ExecutionId(f"e{number}")


def run_id(number: int) -> RunId:
    """The id of a pipeline run: `r2`."""
    return RunId(f"r{number}")


def process_id(execution: int, number: int | None, uid: Uid) -> ProcessId:
    """`e2.p3`; a witness that does not number its activities has their uids shown."""
    return ProcessId(f"e{execution}.{uid if number is None else f'p{number}'}")


def version_id(execution: int, locator: Locator, ordinal: int) -> VersionId:
    """`e2:PATH@N`: unique, and can be typed, also where the path is not UTF-8: then it is escaped
    as in the locator."""
    shown = path_fields(locator)
    path = locator[locator.find("/", len("file://")) :] if "path_b64" in shown else shown["path"]
    return VersionId(f"e{execution}:{path}@{ordinal}")
