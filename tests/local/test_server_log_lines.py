"""Logs by lines, exports and sandboxed pages over HTTP."""

import io
import json
import tarfile
import zipfile
from collections.abc import Iterator

import pytest
from tests.driver import Project
from tests.local.server import Server, run_server
from tests.wait import wait_until


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("lines"))
    project.shell("seq 1 100000; echo oh >&2", "--name", "many")
    project.write("page.html", "<script>document.title = 'x'</script>")
    project.shell("cat page.html > copy.html", "--name", "page")
    return project


@pytest.fixture(scope="module")
def server(project: Project) -> Iterator[Server]:
    with run_server(project) as running:
        yield running


def test_the_blocks_of_a_stream(server: Server) -> None:
    with server.client() as client:
        base = "/api/v1/executions/many/streams/stdout"
        found = client.get(f"{base}/lines").json()
        text = "".join(f"{n}\n" for n in range(1, 100_001))
        assert (found["lines"], found["size"], found["complete"]) == (100_000, len(text), True)
        parts = [client.get(f"{base}/blocks/{n}").text for n in range(len(found["blocks"]))]
        assert "".join(parts) == text
        for (line, _), part in zip(found["blocks"], parts, strict=True):
            assert part.startswith(f"{line + 1}\n")
        attempt = found["attempt"]
        kept = client.get(f"{base}/blocks/0", params={"attempt": attempt})
        assert "immutable" in kept.headers["Cache-Control"]
        assert client.get(f"{base}/blocks/0", params={"attempt": "0" * 32}).status_code == 409
        assert client.get(f"{base}/blocks/999").status_code == 404
        later = client.get(f"{base}/lines", params={"from": 3}).json()
        assert later["blocks"] == found["blocks"][3:]
        matches = client.get(f"{base}/matches", params={"q": "9999"}).json()
        assert matches["lines"] == [n - 1 for n in range(1, 100_001) if "9999" in str(n)]
        other = "/api/v1/executions/many/streams/stderr/lines"
        assert client.get(other).json()["lines"] == 1
        silent = "/api/v1/executions/page/streams/stdout/lines"
        assert client.get(silent).json()["lines"] == 0


def test_the_stream_of_a_running_execution_grows(project: Project, server: Server) -> None:
    line = "echo first; read line; echo $line"
    process = project.start("exec", "--name", "live", "--", "sh", "-c", line)
    path = "/api/v1/executions/live/streams/stdout/lines"
    with server.client() as client:

        def lines() -> int:
            answer = client.get(path)
            return int(answer.json()["lines"]) if answer.status_code == 200 else -1

        wait_until("its first line", lambda: lines() == 1)
        assert client.get(path).json()["complete"] is False
        process.communicate("second\n")
        wait_until("its end", lambda: client.get(path).json()["complete"])
        assert lines() == 2


def test_exports(project: Project, server: Server) -> None:
    with server.client() as client:

        def export(form: str) -> bytes:
            answer = client.get("/api/v1/executions/page/export", params={"format": form})
            assert answer.status_code == 200, answer.text
            assert answer.headers["Content-Disposition"].startswith("attachment")
            assert int(answer.headers["Content-Length"]) == len(answer.content)
            return answer.content

        assert "entity" in json.loads(export("prov-json"))
        assert export("prov-n").startswith(b"document")
        with tarfile.open(fileobj=io.BytesIO(export("ro-crate"))) as crate:
            assert "./ro-crate-metadata.json" in crate.getnames()
        assert zipfile.is_zipfile(io.BytesIO(export("bundle")))
        refused = client.get("/api/v1/executions/page/export", params={"format": "exe"})
        assert refused.status_code == 422
        assert client.get("/api/v1/executions/e99/export?format=bundle").status_code == 404


def test_a_page_has_an_origin_of_its_own(server: Server) -> None:
    with server.client() as client:
        found = client.get("/api/v1/versions/page:copy.html/html")
        assert found.headers["Content-Type"].startswith("text/html")
        policy = found.headers["Content-Security-Policy"]
        assert policy.startswith("sandbox allow-scripts;")
        assert "allow-same-origin" not in policy and "default-src 'none'" in policy
        assert client.get("/api/v1/versions/page:copy.html/preview").json()["kind"] == "html"
