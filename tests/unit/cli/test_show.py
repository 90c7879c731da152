"""`clew show` as text."""

from datetime import UTC, datetime

import click
from msgspec import structs

from clew.cli.execution_summary import environment_lines, process_lines, summary_lines
from clew.documents.executions.detail import Gap, Process
from clew.documents.executions.summary import (
    ExecutionSummary,
    OwnFile,
    OwnFiles,
    Relative,
    Relatives,
    RequestedPackage,
)
from clew.documents.ids import Digest, ExecutionId, ProcessId, TaskId, Uid
from clew.documents.project.notes import Note

EVIL = "\x1b[2Jx"


def test_text_of_a_server_cannot_control_the_terminal() -> None:
    id_ = ExecutionId(EVIL)
    file = OwnFile(path=EVIL, class_="data", size=1, digest=Digest(EVIL), made_by=id_)
    files = OwnFiles(total=2, files=(file,))
    hows = ("file", "copy", "modification", "parameter")
    relatives = Relatives(
        total=9,
        executions=tuple(
            Relative(
                id=id_,
                uid=Uid(EVIL),
                started=None,
                name=EVIL,
                task=TaskId(EVIL),
                command=("a", EVIL),
                how=how,  # type: ignore[arg-type]
                paths=(EVIL,),
            )
            for how in hows
        ),
    )
    process = Process(
        id=ProcessId(EVIL), uid=Uid(EVIL), parent=None, pid=1, command=(EVIL,), exe=EVIL, cwd=EVIL,
        started=datetime.now(UTC), ended=None, status=EVIL, signal=None,  # type: ignore[arg-type]
    )  # fmt: skip
    other = structs.replace(process, id=ProcessId("other"))
    summary = ExecutionSummary(
        id=id_, uid=Uid(EVIL), name=EVIL, command=(EVIL,), cwd=EVIL, agent=EVIL, signed_by=EVIL,
        state=EVIL, task=TaskId(EVIL), tags=(EVIL,),  # type: ignore[arg-type]
        tree=(process, other), git={"commit": EVIL}, credential_files=(EVIL,),
        gaps=(Gap(what=EVIL, why=EVIL, path=EVIL, by=None),),
        environment={
            EVIL: EVIL, "variables": {EVIL: EVIL}, "redacted": [EVIL], "pinned": {EVIL: EVIL},
            "argument_secrets": {EVIL: [EVIL, None]},
        },
        notes=(Note(key=EVIL, value=EVIL, at=datetime.now(UTC), agent=EVIL),),
        parameters={EVIL: EVIL},
        packages=(RequestedPackage(manager=EVIL, name=EVIL, version=EVIL),),
        own_inputs=files, own_outputs=files, derived_from=relatives, derived=relatives,
    )  # fmt: skip
    lines = [*summary_lines(summary), *process_lines(summary.tree)]
    assert [line for line in map(click.unstyle, lines) if not line.isprintable()] == []
    assert all("\x1b[2J" not in line for line in lines)
    assert (EVIL, EVIL) in environment_lines(summary)
