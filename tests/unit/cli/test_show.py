"""`clew show` as text."""

from typing import Any

import click

from clew.cli.commands.show import summarize

EVIL = "\x1b[2Jx"


def test_text_of_a_server_cannot_control_the_terminal() -> None:
    process = {"id": EVIL, "parent": None, "command": [EVIL], "status": EVIL}
    document: dict[str, Any] = {
        **dict.fromkeys(("id", "name", "state", "cwd", "agent", "signed_by", "signal"), EVIL),
        "status": 1, "command": [EVIL], "seconds": 1.0, "started": None, "made_elsewhere": True,
        "processes": 1, "inputs": 1, "outputs": 1, "bytes": 1, "new_bytes": 1,
        "tree": [process], "git": {"commit": EVIL}, "credential_files": [EVIL],
        "gaps": [{"what": EVIL, "why": EVIL, "path": EVIL}],
        "environment": {
            EVIL: EVIL, "variables": {EVIL: EVIL}, "redacted": [EVIL],
            "argument_secrets": {EVIL: [EVIL, None]},
        },
    }  # fmt: skip
    plain = map(click.unstyle, summarize(document))
    assert [line for line in plain if not line.isprintable()] == []
    assert all("\x1b[2J" not in line for line in summarize(document))
