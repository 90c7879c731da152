"""`clew show` as text."""

from datetime import UTC, datetime
from typing import Any

import click

from clew.cli.execution_summary import environment_lines, process_lines, summary_lines
from clew.documents.executions import Execution
from clew.documents.ids import Digest, ExecutionId, Uid
from clew.documents.notes import Note
from clew.documents.summaries import (
    ExecutionSummary,
    OwnFile,
    OwnFiles,
    Relative,
    Relatives,
    RequestedPackage,
)

EVIL = "\x1b[2Jx"


def test_text_of_a_server_cannot_control_the_terminal() -> None:
    id_ = ExecutionId(EVIL)
    execution = Execution(
        id=id_, uid=Uid(EVIL), name=EVIL, command=[EVIL], cwd=EVIL, agent=EVIL, state=EVIL,
        signed_by=EVIL, task=EVIL, tags=[EVIL],
    )  # fmt: skip
    file = OwnFile(path=EVIL, class_="data", size=1, digest=Digest(EVIL), made_by=id_)
    files = OwnFiles(total=2, files=(file,))
    hows = ("file", "copy", "modification", "parameter")
    relatives = Relatives(
        total=9,
        executions=tuple(
            Relative(id=id_, name=EVIL, task=EVIL, command=("a", EVIL), how=how, paths=(EVIL,))  # type: ignore[arg-type]
            for how in hows
        ),
    )
    summary = ExecutionSummary(
        notes=(Note(key=EVIL, value=EVIL, at=datetime.now(UTC), agent=EVIL),),
        parameters={EVIL: EVIL},
        packages=(RequestedPackage(manager=EVIL, name=EVIL, version=EVIL),),
        own_inputs=files,
        own_outputs=files,
        derived_from=relatives,
        derived=relatives,
    )
    process = {"id": EVIL, "parent": None, "command": [EVIL], "status": EVIL}
    document: dict[str, Any] = {
        "tree": [process, {**process, "id": "other"}], "git": {"commit": EVIL},
        "credential_files": [EVIL], "gaps": [{"what": EVIL, "why": EVIL, "path": EVIL}],
        "environment": {
            EVIL: EVIL, "variables": {EVIL: EVIL}, "redacted": [EVIL], "pinned": {EVIL: EVIL},
            "argument_secrets": {EVIL: [EVIL, None]},
        },
    }  # fmt: skip
    lines = [*summary_lines(execution, summary, document), *process_lines(document["tree"])]
    assert [line for line in map(click.unstyle, lines) if not line.isprintable()] == []
    assert all("\x1b[2J" not in line for line in lines)
    assert (EVIL, EVIL) in environment_lines(document)
