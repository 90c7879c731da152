"""The lines of the server's log."""

import json
import logging
import sys

from clew.server.log_format import _Lines


def test_no_secret_is_in_a_line() -> None:
    try:
        raise ConnectionError("to host=db password=hunter22 user=me")
    except ConnectionError:
        raised = sys.exc_info()
    record = logging.LogRecord(
        "clew",
        logging.ERROR,
        __file__,
        1,
        "GET %s failed",
        ("http://h/lab?token=hunter22",),
        raised,
    )
    line = _Lines().format(record)
    assert json.loads(line)["message"] == "GET http://h/lab?token=*** failed"
    assert "password=***" in json.loads(line)["traceback"]
