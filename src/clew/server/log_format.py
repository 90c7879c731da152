"""The server's log: a line of JSON on stderr for each event, with secrets masked."""

import json
import logging
import sys
import time
from typing import Any

from clew.redaction import mask_text

_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        more = {name: value for name, value in vars(record).items() if name not in _KNOWN}
        document: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask_text(record.getMessage()),
            **more,
        }
        if record.exc_info:
            document["traceback"] = mask_text(self.formatException(record.exc_info))
        return json.dumps(document, ensure_ascii=False, default=str)


def configure() -> None:
    """To be called once, by each process of the server."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
