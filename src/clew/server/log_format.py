"""The server's log on stderr, with secrets masked: a line of JSON for each event. For a person at a
terminal there are plain lines instead, without those of single requests."""

import json
import logging
import sys
import time
from typing import Any

from clew.redaction import mask_text

_KNOWN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": mask_text(record.getMessage()),
            **_more(record),
        }
        if record.exc_info:
            document["traceback"] = mask_text(self.formatException(record.exc_info))
        return json.dumps(document, ensure_ascii=False, default=str)


class _PlainLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        more = " ".join(f"{name}={value}" for name, value in _more(record).items())
        text = f"{record.getMessage()} ({more})" if more else record.getMessage()
        line = f"clew: {_escape(mask_text(text))}"
        if record.exc_info:
            traceback = mask_text(self.formatException(record.exc_info))
            line = "\n".join([line, *map(_escape, traceback.splitlines())])
        return line


def _more(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _KNOWN}


def _escape(text: str) -> str:
    """Text on one line, with every character that a terminal would obey made visible."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _is_for_a_person(record: logging.LogRecord) -> bool:
    """No single requests (a failure has a traceback of its own), and nothing about uvicorn's own
    start and end."""
    if getattr(record, "event", "") == "request":
        return False
    return record.levelno >= logging.WARNING or not record.name.startswith("uvicorn")


def configure(*, plain: bool = False) -> None:
    """To be called once, by each process of the server. `plain`: lines for a person."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PlainLines() if plain else _Lines())
    if plain:
        handler.addFilter(_is_for_a_person)
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
