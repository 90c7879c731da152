"""Rules: what two files may differ in and still be equivalent, and what they may not."""

import gzip
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import ClewError
from clew.project_directory import Ignore
from clew.replay.compare import normalizers, volatile_rules
from clew.replay.compare.volatile_rules import BUILT_IN, find_equivalence, load_rules


def judged(path: str, a: bytes, b: bytes) -> str | None:
    """The rules by which both are the same; each is told whichever comes first."""
    names = find_equivalence(BUILT_IN, path, a, b)
    assert find_equivalence(BUILT_IN, path, b, a) == names
    return names


def zipped(year: int, content: bytes = b"x" * 100, name: str = "x.txt") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), content)
    return file.getvalue()


def tarred(mtime: int, content: bytes = b"x", mode: str = "w", **about: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        info = tarfile.TarInfo("x.txt")
        info.size, info.mtime = len(content), mtime
        for name, value in about.items():
            setattr(info, name, value)
        archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def test_a_zip_made_at_another_time() -> None:
    assert judged("/w/a.zip", zipped(2001), zipped(2002)) == "zip"
    assert judged("/w/a.zip", zipped(2001), zipped(2001, b"y")) is None
    assert judged("/w/a.zip", zipped(2001), zipped(2001, name="y.txt")) is None
    assert judged("/w/called.otherwise", zipped(2001), zipped(2002)) == "zip"


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_made_at_another_time(mode: str) -> None:
    first = tarred(1, mode=mode)
    assert judged("/w/a.tar", first, tarred(2, mode=mode)) == "tar"
    assert judged("/w/a.tar", first, tarred(2, b"y", mode=mode)) is None
    assert judged("/w/a.tar", first, tarred(2, mode=mode, uid=7)) is None


def test_times_within_one_second_in_a_tar() -> None:
    headers = [{"mtime": f"{n}.5"} for n in (1, 2)]
    made = []
    for header in headers:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            info = tarfile.TarInfo("x")
            info.pax_headers = header
            archive.addfile(info)
        made.append(file.getvalue())
    assert judged("/w/a.tar", *made) == "tar"


def test_a_gzip_made_at_another_time() -> None:
    assert judged("/w/a.gz", gzip.compress(b"x", mtime=1), gzip.compress(b"x", mtime=2)) == "gzip"
    assert judged("/w/a.gz", gzip.compress(b"x", mtime=1), gzip.compress(b"y", mtime=1)) is None


def test_a_static_library_made_at_another_time(tmp_path: Path) -> None:
    def made(mtime: int, content: bytes) -> bytes:
        header = b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (b"a.o/", mtime, 0, 0, b"644", len(content))
        return b"!<arch>\n" + header + content + b"\n" * (len(content) % 2)

    assert judged("/w/a.a", made(1, b"abc"), made(222, b"abc")) == "ar"
    assert judged("/w/a.a", made(1, b"abc"), made(1, b"abd")) is None
    listed = tmp_path / "a.a"
    listed.write_bytes(made(1, b"abc"))  # the header is as ar itself writes it
    names = subprocess.run(["ar", "t", listed], capture_output=True, text=True)
    assert names.stdout == "a.o\n"


def test_compiled_python_of_a_touched_source(tmp_path: Path) -> None:
    source = tmp_path / "m.py"
    made = []
    for mtime, text in ((1, "x = 1\n"), (2, "x = 1\n"), (2, "x = 2\n")):
        source.write_text(text)
        os.utime(source, (mtime, mtime))
        compiled = tmp_path / f"{len(made)}.pyc"
        program = "import sys, py_compile; py_compile.compile(sys.argv[1], sys.argv[2])"
        subprocess.run([sys.executable, "-c", program, source, compiled], check=True)
        made.append(compiled.read_bytes())
    assert judged("/w/m.pyc", made[0], made[1]) == "pyc"
    assert judged("/w/m.pyc", made[0], made[2]) is None


def test_a_notebook_run_again() -> None:
    def notebook(when: str, text: str = "1") -> bytes:
        output = {"output_type": "stream", "text": text}
        cell = {"metadata": {"execution": {"iopub.status.busy": when}}, "outputs": [output]}
        return json.dumps({"cells": [cell], "metadata": {"papermill": {"end": when}}}).encode()

    assert judged("/w/n.ipynb", notebook("a"), notebook("b")) == "notebook"
    assert judged("/w/n.ipynb", notebook("a"), notebook("a", "2")) is None
    assert judged("/w/n.json", notebook("a"), notebook("b")) is None


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_an_image_made_at_another_time() -> None:
    def image(second: int, pixels: bytes = b"p", comment: bytes = b"c") -> bytes:
        parts = chunk(b"tIME", struct.pack(">HBBBBB", 2026, 1, 1, 0, 0, second))
        parts += chunk(b"tEXt", b"date:create\0" + bytes([48 + second]))
        parts += chunk(b"tEXt", b"Comment\0" + comment) + chunk(b"IDAT", pixels)
        return b"\x89PNG\r\n\x1a\n" + parts

    assert judged("/w/a.png", image(1), image(2)) == "png"
    assert judged("/w/a.png", image(1), image(1, b"q")) is None
    assert judged("/w/a.png", image(1), image(1, comment=b"d")) is None


def test_a_document_made_at_another_time() -> None:
    def document(day: int, text: bytes = b"text") -> bytes:
        dates = b"/CreationDate (D:202601%02d120000Z) /ModDate(D:202601%02d)" % (day, day)
        return b"%PDF-1.4\n" + dates + b"\n/ID [<%032x> <%032x>]\n" % (day, day) + text

    assert judged("/w/a.pdf", document(1), document(2)) == "pdf"
    assert judged("/w/a.pdf", document(1), document(1, b"other")) is None


def test_a_drawing_made_at_another_time() -> None:
    drawings = [b"<svg><dc:date>%d</dc:date><a/></svg>" % n for n in (1, 2)]
    assert judged("/w/a.svg", *drawings) == "svg"
    assert judged("/w/a.svg", drawings[0], drawings[1].replace(b"<a/>", b"<b/>")) is None


@pytest.mark.parametrize(
    ("a", "b", "rule"),
    [
        ("2026-11-15 09:05:33,123 INFO done", "2027-01-02 19:55:00,001 INFO done", "times"),
        ("at 2026-11-15T09:05:33.5+01:00 done", "at 2026-11-16T01:02:03.25Z done", "times"),
        ("Sun Nov 15 09:05:33 UTC 2026", "Mon Nov 16 10:00:00 UTC 2026", "times"),
        ("Nov 15 09:05:33 host x", "Nov  6 10:00:00 host x", "times"),
        ("[09:05:33] step", "[10:00:01] step", "times"),
        ("epoch 1 took 3.25s", "epoch 1 took 12 s", "durations"),
        ("100%| 5/5 [00:01<00:00, 3.2it/s]", "100%| 5/5 [00:02<00:00, 2.9it/s]", "durations"),
        ("469/469 - 2s - 4ms/step", "469/469 - 3s - 7ms/step", "durations"),
        ("<object at 0x7f1c2a3b4c5d>", "<object at 0x7ffff0001234>", "addresses"),
        ("started, pid 812", "started, pid 99131", "addresses"),
        ("09:05:33 took 1 s", "09:05:34 took 2 s", "times, durations"),
        ("09:05:33 INFO x", "09:05:33 WARN x", None),
        ("2026-11-15 09:05:33 PASS", "2026-11-15 09:05:33 FAIL", None),
        ("loss 0.25", "loss 0.26", None),
        ("rows: 12", "rows: 13", None),
        ("accuracy 0.9 in 3 s", "accuracy 0.8 in 3 s", None),
        ("ratio 16:09", "ratio 04:03", None),
        ("done", "done in 3 s", None),
        ("0xdeadbeef", "0xdeadbeee", None),
    ],
)
def test_logs(a: str, b: str, rule: str | None) -> None:
    assert judged("/w/train.log", a.encode(), b.encode()) == rule
    assert judged("stdout", a.encode(), b.encode()) == rule
    assert judged("/w/result.csv", a.encode(), b.encode()) is None


def test_what_a_terminal_does_to_lines() -> None:
    assert judged("stdout", b"a\r\nb\r\n", b"a\nb\n") == "terminal"
    assert judged("/w/a.txt", b"a\r\nb\r\n", b"a\nb\n") is None


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_no_content_breaks_a_rule(a: bytes, b: bytes) -> None:
    for path in ("stdout", "/w/a.pyc", "/w/a.ipynb", "/w/a.svg"):
        for start in (b"", b"PK\x03\x04", b"\x1f\x8b\x08", b"!<arch>\n", b"\x89PNG\r\n\x1a\n"):
            names = find_equivalence(BUILT_IN, path, start + a, start + b)
            assert names is not None if a == b else names != ""


@pytest.mark.parametrize("made", [zipped(2001, bytes(1 << 20)), tarred(1, bytes(1 << 20), "w:gz")])
def test_an_archive_that_unfolds_to_too_much(made: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalizers, "MAX_UNPACKED", 1 << 16)
    for normalize in (normalizers.normalize_zip, normalizers.normalize_tar):
        with pytest.raises(normalizers.NotApplicable):
            normalize(made)


def header(kind: bytes, content: bytes, name: str = "x") -> bytes:
    """One member of a tar archive, of any type."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content)
    return info.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


FILE = header(tarfile.REGTYPE, b"x")
SPARSE_MAP = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
EXPENSIVE = {
    "long extended header": header(tarfile.XHDTYPE, b"6 a=b\n" * (3 << 20)) + FILE,
    "many extended headers": (header(tarfile.XHDTYPE, b"6 a=b\n" * 300) + FILE) * 150,
    "global header": header(tarfile.XGLTYPE, b"6 a=b\n" * 1000) + FILE,
    "long name": header(tarfile.GNUTYPE_LONGNAME, b"a" * (9 << 20)) + FILE,
    "members": FILE * 1001,
    "sparse": header(tarfile.GNUTYPE_SPARSE, b"x"),
    "sparse map": header(tarfile.XHDTYPE, SPARSE_MAP)
    + header(tarfile.REGTYPE, b"9999999\n" + b"1\n" * (1 << 20)),
}


@pytest.fixture
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalizers, "_MAX_MEMBERS", 1000)
    monkeypatch.setattr(normalizers, "_MAX_EXTENDED_HEADERS", 1 << 18)


@pytest.mark.parametrize("content", EXPENSIVE.values(), ids=EXPENSIVE)
def test_a_tar_with_expensive_headers_is_refused(content: bytes, low_limits: None) -> None:
    for made in (content, gzip.compress(content, compresslevel=1)):
        with pytest.raises(normalizers.NotApplicable):
            normalizers.normalize_tar(made)


def test_a_tar_with_the_headers_of_git_archive_is_read() -> None:
    comment = header(tarfile.XGLTYPE, b"52 comment=" + b"a" * 40 + b"\n")
    assert normalizers.normalize_tar(comment + FILE + bytes(1024))


def test_a_zip_with_too_many_members_is_refused(low_limits: None) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(1001):
            archive.writestr(str(number), b"")
    with pytest.raises(normalizers.NotApplicable):
        normalizers.normalize_zip(file.getvalue())


# -- the project's own


def own(pattern: str, *paths: str) -> tuple[volatile_rules.Rule, ...]:
    return load_rules([Ignore("mine", paths or ("*/report.json",), pattern)])


def test_a_rule_of_the_project() -> None:
    known = own(r'"id": "\w+"')
    assert find_equivalence(known, "/w/report.json", b'{"id": "a"}', b'{"id": "b"}') == "mine"
    assert find_equivalence(known, "/w/report.json", b'{"id": "a"}', b'{"no": "b"}') is None
    assert find_equivalence(known, "/w/other.json", b'{"id": "a"}', b'{"id": "b"}') is None


def test_a_rule_of_the_project_beside_those_built_in() -> None:
    known = own(r"run \w+", "*.log")
    a, b = b"09:05:33 run abc\n", b"10:00:00 run xyz\n"
    assert find_equivalence(known, "/w/a.log", a, b) == "mine, times"


def test_lines_are_taken_one_by_one() -> None:
    known = own(r"^#.*$", "*.txt")
    assert find_equivalence(known, "/w/a.txt", b"# 1\nx\n", b"# 2\nx\n") == "mine"


def test_an_invalid_pattern_is_an_error() -> None:
    with pytest.raises(ClewError, match="mine has a pattern that cannot be read") as error:
        own("(")
    assert "config.toml" in error.value.hint


def test_a_pattern_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volatile_rules, "_PATTERN_TIMEOUT", 0.5)
    known = own("(a+)+$", "*.txt")
    assert find_equivalence(known, "/w/a.txt", b"a" * 64 + b"b", b"a" * 64 + b"c") is None
