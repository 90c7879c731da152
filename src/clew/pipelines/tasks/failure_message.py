"""Say why a task failed, from its exit status and the end of its output.

A Python traceback gives the exception and the line of the component that raised it; from any other
output, the last line is quoted.
"""

import os
import re
from typing import BinaryIO

_TAIL_BYTES = 1 << 15
_MAX_LENGTH = 400
_START = "Traceback (most recent call last):"
_SDK_LOG = "[KFP Executor"
_FRAME = re.compile(r'  File "(.+)", line (\d+), in .+')


def read_tail(file: BinaryIO) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_BYTES))
    return file.read(_TAIL_BYTES).decode(errors="replace")


def explain_failure(status: int, output: str) -> str:
    """One line; `output` is the end of what the task printed, secrets masked."""
    if status == 1 and (exception := _last_exception(output)):
        return _shorten(exception)
    ended = f"it ended with {f'signal {status - 128}' if status > 128 else f'status {status}'}"
    lines = [line.strip() for line in output.split("\n") if not line.startswith(_SDK_LOG)]
    last = next((line for line in reversed(lines) if line), "")
    return _shorten(f"{ended}: {last}" if last else ended)


def _last_exception(output: str) -> str | None:
    """`ValueError: no rows (component.py, line 7: raise ValueError("no rows"))`"""
    lines = output[output.rfind(_START) :].splitlines()
    lines = [line for line in lines if not line.startswith(_SDK_LOG)]  # of another stream
    if not lines or lines[0] != _START:
        return None
    frame = code = ""
    for line, following in zip(lines[1:], [*lines[2:], ""], strict=True):
        if found := _FRAME.fullmatch(line):
            name = os.path.basename(found[1])
            if name == "component.py" or not frame.startswith("component.py"):
                frame = f"{name}, line {found[2]}"
                code = following.strip() if following.startswith("    ") else ""
        elif line and not line[0].isspace():
            place = f"{frame}: {code}" if code else frame
            return f"{line} ({place})" if place else line
    return None


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
