"""`clew cat`."""

import base64
import subprocess

import pytest
from tests.driver import Project, workflow


@pytest.fixture(scope="module")
def clew(tmp_path_factory: pytest.TempPathFactory, graph_in_turn: dict[str, str]) -> Project:
    return workflow(tmp_path_factory.mktemp("once"), **graph_in_turn)


def test_what_was_found_and_what_was_left(clew: Project) -> None:
    clew.write("f", "old")
    run = clew.shell("cat f > g; echo new > f")["id"]
    assert clew("cat", f"{run}:f@input").stdout == "old"
    assert clew("cat", f"{run}:f").stdout == "new\n"
    assert clew("cat", f"{run}:f@1").stdout == "old"
    assert clew("cat", "f").stdout == "new\n"


def test_by_digest(clew: Project) -> None:
    digest = clew.json("restore", "--list", "model.txt")[0]["digest"]
    assert clew("cat", digest[:15]).stdout == clew("cat", "e2:model.txt").stdout == "2\n"


def test_bytes_pass_unchanged(clew: Project) -> None:
    content = bytes(range(256)) * 5000
    (clew.folder / "blob").write_bytes(content)
    version = clew.shell("cat blob > copy")["id"] + ":copy"
    process = clew.start("cat", version, text=False, stdin=subprocess.DEVNULL)
    out, _ = process.communicate()
    assert out == content
    assert base64.b64decode(clew.json("cat", version)["content_b64"]) == content


def test_streams_are_kept(clew: Project) -> None:
    run = clew.shell("echo said; echo warned >&2")["id"]
    assert clew("cat", f"{run}:stdout").stdout == "said\n"
    assert clew("cat", f"{run}:stderr").stdout == "warned\n"


def test_a_redirected_stream_is_its_file(clew: Project) -> None:
    with open(clew / "out.txt", "w") as out:
        ran = clew.command(
            "exec",
            "--name",
            "redirected",
            "--",
            "echo",
            "said",
            stdout=out,
            stderr=out,
            capture_output=False,
        )
    assert ran.returncode == 0
    for stream in ("stdout", "stderr"):
        assert clew("cat", f"redirected:{stream}").stdout == "said\n"


def test_targets_that_are_not_versions(clew: Project) -> None:
    assert clew.error("cat", "e1", status=2)[0] == "usage"
    assert clew.error("cat", "e1:nothing", status=5)[0] == "not-found"
