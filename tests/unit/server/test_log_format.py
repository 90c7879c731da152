"""The lines of the server's log."""

import json
import logging
import sys

from clew.server.log_format import _is_for_a_person, _Lines, _PlainLines


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


def test_lines_for_a_person_leave_out_requests_and_show_control_characters() -> None:
    request = logging.makeLogRecord({"name": "clew.server", "msg": "GET / 200", "levelno": 20})
    request.event = "request"
    assert not _is_for_a_person(request)
    start = logging.makeLogRecord({"name": "uvicorn.error", "msg": "Started", "levelno": 20})
    assert not _is_for_a_person(start)
    message = "run failed \x1b[31m http://h/lab?token=hunter22"
    found = logging.makeLogRecord({"name": "clew.server", "msg": message, "levelno": 30})
    found.run = "r1"
    assert _is_for_a_person(found)
    line = _PlainLines().format(found)
    assert line == "clew: run failed \\x1b[31m http://h/lab?token=*** (run=r1)"


def test_a_traceback_for_a_person_has_no_control_characters() -> None:
    try:
        raise ValueError("a recorded name \x1b]0;title\x07")
    except ValueError:
        found = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})
    lines = _PlainLines().format(found).splitlines()
    assert lines[:2] == ["clew: failed", "Traceback (most recent call last):"]
    assert lines[-1] == "ValueError: a recorded name \\x1b]0;title\\x07"
