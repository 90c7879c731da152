"""docs/formats/trace.md says what clew-trace writes: held against the code and against a trace."""

import re
import struct
import subprocess
from pathlib import Path

import msgspec
import pytest

from clew.witness import tracer_binary
from clew.witness.syscalls import trace_format

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/formats/trace.md").read_text()
TYPES = trace_format.AnyRecord.__args__


def _rows(*heads: str) -> list[list[str]]:
    """The rows of the table whose head has these cells."""
    lines = PAGE.splitlines()
    start = next(n for n, line in enumerate(lines) if _cells(line)[: len(heads)] == list(heads))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(_cells(line))
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _names(text: str) -> list[str]:
    """The names in `a (why, and how), b and c (…), d`."""
    plain = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", "", text)
    return [name.strip() for name in re.split(r",| and ", plain) if name.strip()]


def test_every_record_type_and_field_is_described() -> None:
    described = {int(tag): (name, _names(fields)) for tag, name, fields in _rows("type", "name")}
    common = [field.name for field in msgspec.structs.fields(trace_format.Record)]
    coded = {
        kind.__struct_config__.tag: (
            kind.__name__,
            [field.name for field in msgspec.structs.fields(kind)][len(common) :],
        )
        for kind in TYPES
    }
    assert described == coded
    assert [row[0] for row in _rows("field", "meaning")] == ["type", *common]


def test_a_file_stat_is_described() -> None:
    described = re.search(r"\*\*file stat\*\* .*?array of (.*?)\.", PAGE)
    assert described is not None
    assert _names(described[1]) == list(trace_format.FileStat._fields)


def test_kinds_of_looks_are_described() -> None:
    described = {name: int(kind) for kind, name, _ in _rows("kind", "name")}
    assert described == {name: getattr(trace_format, name) for name in described}
    assert len(described) == 5


def test_every_change_the_tracer_writes_is_described() -> None:
    source = (ROOT / "native/trace/syscalls/syscall_exit.c").read_text()
    written = set(re.findall(r'emit_change\(task, "(\w+)"', source)) | {"rename", "exchange"}
    described = {
        name for row in _rows("what", "path", "path2") for name in re.findall(r"`(\w+)`", row[0])
    }
    assert described == written


def test_every_gap_the_tracer_writes_is_described() -> None:
    page = (ROOT / "docs/reference/witness.md").read_text()
    written: set[str] = set()
    for path in (ROOT / "native/trace").rglob("*.c"):
        written |= set(re.findall(r'emit_gap\([^"]*"([\w-]+)"', path.read_text()))
    described = set(re.findall(r"^\| `([\w-]+)` \|", page, re.M))
    assert described == written | {"content"}


@pytest.mark.parametrize("cut", [None, 1, 3, 100])
def test_a_trace_follows_the_documented_format(tmp_path: Path, cut: int | None) -> None:
    trace = tmp_path / "trace"
    command = ["sh", "-c", "echo x > f; mv f g; cat g | cat; rm g"]
    words = [
        tracer_binary.TRACER,
        "--out",
        trace,
        "--spool",
        tmp_path,
        "--library",
        tracer_binary.LIBRARY,
        "--",
    ]
    subprocess.run([*words, *command], check=True, capture_output=True, cwd=tmp_path)
    data = trace.read_bytes()[: -cut if cut else None]
    at, seen = 0, []
    while at + 4 <= len(data):
        (size,) = struct.unpack_from("<I", data, at)
        if at + 4 + size > len(data):
            break
        seen.append(msgspec.msgpack.decode(data[at + 4 : at + 4 + size]))
        at += 4 + size
    assert (at == len(data)) is (cut is None)
    trace.write_bytes(data)
    read = trace_format.Trace(trace)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(read.read())) == seen
    read.close()
    if cut is None:
        assert {row[0] for row in seen} >= {1, 2, 3, 4, 5, 6, 7, 8, 19}
