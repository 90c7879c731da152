"""The ids of things, and names of content and places. All are text; a type says which of them."""

from typing import NewType

Uid = NewType("Uid", str)
"""Identifies an activity, run or project anywhere; never given again."""
ExecutionId = NewType("ExecutionId", str)
"""`e2`: an execution of this project."""
ProcessId = NewType("ProcessId", str)
"""`e2.p3`: a process of an execution."""
RunId = NewType("RunId", str)
"""`r1`: a pipeline run of this project."""
TaskId = NewType("TaskId", str)
"""`r1/train`: a task of a run."""
VersionId = NewType("VersionId", str)
"""`e2:PATH@N`: a version of a file."""
Digest = NewType("Digest", str)
"""`blake3:` and 64 hexadecimal digits: some bytes."""
Locator = NewType("Locator", str)
"""A place: `file://MACHINE/path`, `s3://bucket/key`, …"""
