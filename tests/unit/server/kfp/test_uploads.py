"""Packages of pipelines, as they are uploaded: good ones, broken ones, and traps."""

import gzip
import io
import json
import tarfile
import zipfile
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.pipelines.compiled_pipelines import document, leaf, task

from clew.bounded_documents import load_documents
from clew.errors import UsageError
from clew.pipelines.spec import parser
from clew.server.kfp import uploads
from clew.server.parsers import compiled_pipelines

PIPELINE: dict[str, Any] = document({"one": task("comp")}, {"comp": leaf()})
PLATFORM = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": {}}}}}
TEXT = yaml.safe_dump(PIPELINE, sort_keys=False).encode()


def zipped(**files: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name.replace("__", "/"), data)
    return made.getvalue()


def tarred(**files: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(made.getvalue(), mtime=0)  # the same each time: tests are named by it


def read(data: bytes) -> str:
    return uploads.read_package(io.BytesIO(data))


@pytest.mark.parametrize(
    "data",
    [
        TEXT,
        b"\xef\xbb\xbf" + TEXT,
        b"# PIPELINE DEFINITION\n" + TEXT,
        json.dumps(PIPELINE).encode(),
        json.dumps(PIPELINE, indent=2).encode(),
        zipped(**{"any.yaml": TEXT}),
        zipped(**{"any.yml": TEXT, "README.md": b"read me"}),
        zipped(**{"other.yaml": b"a: b", "pipeline.yaml": TEXT}),
        tarred(**{"folder__any.yaml": TEXT}),
        tarred(**{"other.yaml": b"a: b", "pipeline.yaml": TEXT}),
        tarred(**{".__pipeline.yaml": TEXT, "z.yaml": b"a: b"}),
    ],
)
def test_a_package_is_what_it_holds(data: bytes) -> None:
    assert json.loads(read(data)) == PIPELINE


def test_what_is_kept_can_be_run_and_shown() -> None:
    kept = read(yaml.safe_dump_all([PIPELINE, PLATFORM]).encode())
    assert parser.parse_pipeline(kept).name == PIPELINE["pipelineInfo"]["name"]
    shown = json.loads(bytes(compiled_pipelines.to_response(kept)))
    assert shown == {"pipeline_spec": PIPELINE, "platform_spec": PLATFORM}
    assert compiled_pipelines.normalize_object(shown) == kept
    alone = read(TEXT)
    assert json.loads(bytes(compiled_pipelines.to_response(alone))) == PIPELINE
    assert compiled_pipelines.normalize_object(PIPELINE) == alone


def test_numbers_and_signs_stay_what_they_are() -> None:
    given_ = {**PIPELINE, "sdkVersion": "1e5 \u0001 \x7f \u2028 😀", "defaultPipelineRoot": 1e20}
    kept = compiled_pipelines.normalize_object(given_)
    assert load_documents(kept) == [given_]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty"),
        (b"a: b", "pipelineInfo"),
        (b"just a text", "not a mapping"),
        (b"[1, 2]", "not a mapping"),
        (b"\xff\xfe\x00", "UTF-8"),
        (b"a: [", "YAML"),
        (b"{", "YAML"),
        (b"[" * 200_000, "nested"),
        (b'{"a":' * 200_000, "nested"),
        (TEXT + b"\n---\n{}\n---\n{}", "documents"),
        (TEXT + b"\n---\n[1]", "platform"),
        (TEXT.replace(b"schemaVersion: 2.1.0", b"schemaVersion: 1.0.0"), "schemaVersion"),
        (yaml.safe_dump({**PIPELINE, "root": {}}).encode(), "root.dag"),
        (yaml.safe_dump({**PIPELINE, "root": {"dag": {"tasks": 1}}}).encode(), "root.dag.tasks"),
        (yaml.safe_dump({**PIPELINE, "components": [1]}).encode(), "components"),
        (yaml.safe_dump({**PIPELINE, "components": {"a": 1}}).encode(), "components.a"),
        (yaml.safe_dump({**PIPELINE, "pipelineInfo": {}}).encode(), "pipelineInfo.name"),
        (b"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\n", "Workflow"),
        (zipped(**{"README.md": b"read me"}), "no YAML file"),
        (zipped(**{"a.yaml": TEXT, "b.yaml": TEXT}), "several"),
        (zipped(**{"a.yaml": TEXT})[:-30], "unpacked"),
        (b"PK\x03\x04" + b"x" * 100, "unpacked"),
        (zipped(**{f"{number}.txt": b"" for number in range(1001)}), "too many"),
        (tarred(**{"README.md": b"read me"}), "no YAML file"),
        (tarred(**{"a.yaml": TEXT, "b.yaml": TEXT}), "several"),
        (tarred(**{f"{number}.txt": b"" for number in range(1001)}), "too many"),
        (tarred(**{"a.yaml": TEXT * 100})[:-40], "unpacked"),
        (gzip.compress(b"no tar", mtime=0), "unpacked"),
        (b"\x1f\x8b" + b"x" * 100, "unpacked"),
    ],
)
def test_a_malformed_package_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        read(data)


def test_nothing_is_unpacked_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    much = b"\0" * (uploads.MAX_BYTES + 1)
    with pytest.raises(UsageError, match="larger"):
        read(zipped(**{"pipeline.yaml": much}))
    with pytest.raises(UsageError, match="larger"):
        read(tarred(**{"pipeline.yaml": much}))
    monkeypatch.setattr(uploads._LimitedGzip, "_left", 1 << 20)
    with pytest.raises(UsageError, match="too large"):
        read(tarred(**{"first.bin": b"\0" * (2 << 20), "pipeline.yaml": TEXT}))


@pytest.mark.parametrize(("size", "times"), [(24 << 20, 1), (2 << 10, 900)])
def test_long_headers_are_not_gone_through(size: int, times: int) -> None:
    """100 kB of them, compressed, would take eight seconds, and a megabyte minutes."""
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, size
    records = (b"6 a=b\n" * (size // 6 + 1))[:size]
    file = tarfile.TarInfo("a.txt").tobuf()
    one = header.tobuf(tarfile.GNU_FORMAT) + records + b"\0" * (-size % 512) + file
    with pytest.raises(UsageError, match="headers"):
        read(gzip.compress(one * times, compresslevel=1))


def test_maps_of_sparse_files_are_not_gone_through() -> None:
    file = tarfile.TarInfo("a.yaml")
    file.size = 6 << 20
    file.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    new = file.tobuf(tarfile.PAX_FORMAT) + b"9999999\n" + b"1\n" * (3 << 20)
    file = tarfile.TarInfo("a.yaml")
    file.type = tarfile.GNUTYPE_SPARSE
    for data in (new, file.tobuf(tarfile.GNU_FORMAT)):
        with pytest.raises(UsageError, match="sparse"):
            read(gzip.compress(data, compresslevel=1))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for prefix in (b"", b"PK\x03\x04", b"\x1f\x8b"):
        with pytest.raises(UsageError):
            read(prefix + data)
