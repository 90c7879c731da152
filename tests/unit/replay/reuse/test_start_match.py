"""A program is started as it was recorded, or the difference is named."""

from typing import Any

import pytest
from tests.unit.replay.reuse.recorded_step import NULL, Step

from clew.prov.queries.execution_record import Activity, ExecutionRecord
from clew.replay.reuse.start_match import ProgramStart, find_start_difference


def start(record: ExecutionRecord, process: Activity, **changed: Any) -> ProgramStart:
    return ProgramStart(
        **{
            "program": process.exe or "",
            "command": tuple(process.command),
            "cwd": process.cwd or "",
            "environment": {"LANG": "C"},
            "held": NULL,
            "standing": None,
            "reference": record,
            **changed,
        }
    )


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, None),
        ({"environment": {"LANG": "de"}}, "its variable LANG changed"),
        ({"environment": {}}, "its variable LANG is no longer set"),
        ({"environment": {"LANG": "C", "X": "1"}}, "its variable X is new"),
        (
            {"held": [*NULL, [3, 1, "/w/in", 0, 0, 1]]},
            "its input or output is redirected",
        ),
        ({"standing": "umask 0077"}, "its limits, signals or permissions changed"),
        ({"others": 1}, "other processes run at the same time"),
    ],
)
def test_how_it_is_started(changed: dict[str, Any], why: str | None) -> None:
    found = Step().subtree()
    assert find_start_difference(found, start(found.record, found.root, **changed)) == why


@pytest.mark.parametrize(
    ("then", "now", "why"),
    [
        ("seal", "seal", None),
        ("seal", "other", "its variable TOKEN changed"),
        ("seal", None, "its variable TOKEN changed"),
        (None, "seal", "its variable TOKEN is secret, and was not recorded"),
    ],
)
def test_a_secret_is_known_by_its_seal(then: str | None, now: str | None, why: str | None) -> None:
    run = Step(TOKEN="***")
    run.begins(run.step, sealed={"TOKEN": then} if then else {})
    found = run.subtree()
    told = {"environment": {"LANG": "C", "TOKEN": "***"}, "seals": {"TOKEN": now} if now else {}}
    assert find_start_difference(found, start(found.record, found.root, **told)) == why
