"""A record made elsewhere gets no secret, variable or network that its user did not give it."""

import base64
import fcntl
import json
import os
import pty
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.driver import Project
from tests.local.server import run_server

NAME = "AWS_SECRET_ACCESS_KEY"
THEIRS = "wJalrXUtnFEMI/of-the-author"
MINE = "Zm9v+bar/secret-of-the-victim"

STEAL = f"""
import base64, json, os, urllib.parse
value = os.environ.get({NAME!r}, "")
print(len(value), value)
print(base64.b64encode(value.encode()).decode())
print(value.encode().hex())
print(urllib.parse.quote(value, safe=""))
print(json.dumps(value))
"""


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A remote with a record that wants a secret, and the id of that record."""
    place = tmp_path_factory.mktemp("stranger")
    clew = Project(place, **{NAME: THEIRS})
    clew.write("steal.py", STEAL)
    made = json.loads(
        clew("exec", "--json", "--", sys.executable, "steal.py").stderr.splitlines()[-1]
    )
    clew("push", str(place / "remote"))
    return place / "remote", made["uid"]


@pytest.fixture
def victim(tmp_path: Path, stranger: tuple[Path, str]) -> Project:
    """A project with the stranger's record as e1, in an environment that has the secret."""
    clew = Project(tmp_path, **{NAME: MINE})
    clew("pull", str(stranger[0]))
    return clew


def test_a_record_made_elsewhere_is_refused_the_callers_variables(victim: Project) -> None:
    code, message, hint = victim.error("repeat", "e1", status=2)
    assert (code, NAME in message) == ("secrets-needed", True)
    assert "made elsewhere" in message
    assert f"--secret {NAME}" in hint
    assert len(victim.json("list")) == 1


def test_a_secret_that_was_given_is_masked_in_every_encoding(
    victim: Project, tmp_path: Path
) -> None:
    ran = victim("repeat", "e1", "--secret", NAME, status=3)
    assert ran.stdout.splitlines()[0] == f"{len(MINE)} ***"
    first = ran.stderr.splitlines()[0]
    assert (
        first
        == f"clew: this record was made elsewhere: it gets no network and these secrets: {NAME}"
    )
    encodings = {
        *(MINE, base64.b64encode(MINE.encode()).decode(), MINE.encode().hex()),
        *(quote(MINE, safe=""), json.dumps(MINE)),
    }
    kept = victim("cat", "e2:stdout").stdout
    for text in (ran.stdout, ran.stderr, kept, json.dumps(victim.json("show", "e2", "--detail"))):
        assert [one for one in encodings if one in text] == []


def test_a_secret_may_come_from_a_file(victim: Project, tmp_path: Path) -> None:
    (tmp_path / "value").write_text("short\n")
    ran = victim("repeat", "e1", "--secret", f"{NAME}={tmp_path / 'value'}", status=3)
    assert ran.stdout.startswith("5 ")
    code, message, _ = victim.error("repeat", "e1", "--secret", f"{NAME}=no/such", status=2)
    assert (code, "no/such" in message) == ("usage", True)


def test_on_a_terminal_the_user_is_asked(victim: Project) -> None:
    ours, theirs = pty.openpty()

    def own_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = victim.start(
        *("repeat", "latest"),
        stdin=theirs,
        text=False,
        start_new_session=True,
        preexec_fn=own_terminal,
    )
    os.close(theirs)
    prompt = b""
    while b"cancel)" not in prompt:
        prompt += os.read(ours, 1000)
    victim("exec", "--", "true")  # now this is the latest, but the user was asked about the other
    os.write(ours, b"typed-by-the-user\n")
    out, err = process.communicate(timeout=60)
    os.close(ours)
    assert NAME.encode() in prompt
    assert out.startswith(b"17 ***")
    assert b"typed-by-the-user" not in out + err


def test_the_latest_gets_nothing_that_the_user_meant_for_another(victim: Project) -> None:
    for option in (["--secret", NAME], ["--network"], ["--gpu"]):
        code, message, hint = victim.error("repeat", "latest", *option, status=4)
        assert (code, "made elsewhere" in message) == ("not-allowed", True)
        assert hint.endswith("clew repeat e1")
    victim("exec", "--", "true")
    victim("repeat", "latest", "--network")


def test_repeats_of_records_made_elsewhere_get_no_secrets(victim: Project) -> None:
    victim("repeat", "e1", "--secret", NAME, status=3)
    assert victim.error("repeat", "e2", status=2)[0] == "secrets-needed"


def test_a_record_made_here_gets_the_callers_variables(victim: Project) -> None:
    victim("exec", "--", "sh", "-c", f"echo ${{#{NAME}}}")
    ran = victim("repeat", "e2")
    assert ran.stdout == f"{len(MINE)}\n"
    assert "made elsewhere" not in ran.stderr


# -- the network

CONNECT = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
    print("reached")
except OSError:
    print("refused")
"""


def test_the_network_must_be_allowed(tmp_path: Path) -> None:
    """And the record says which it was."""
    author = Project(tmp_path / "author")
    author.write("connect.py", CONNECT)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        author("exec", "--", sys.executable, "connect.py", port)
        author("push", str(tmp_path / "remote"))
        victim = Project(tmp_path / "victim")
        victim("pull", str(tmp_path / "remote"))
        assert victim("repeat", "e1", status=3).stdout == "refused\n"
        assert victim("repeat", "e1", "--network").stdout == "reached\n"
    allowed = [victim.json("show", name)["environment"]["network"] for name in ("e2", "e3")]
    assert allowed == [False, True]


# -- through a server


class _Malicious(BaseHTTPRequestHandler):
    """Asks for every secret there is, whatever is wanted of it."""

    bodies: list[bytes]

    def do_POST(self) -> None:
        self.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        error = {"code": "secrets-needed", "message": "?", "hint": "", "secrets": [NAME, "HOME"]}
        self._answer({"error": error})

    def do_GET(self) -> None:
        self._answer({"id": "e1", "uid": "a" * 32, "command": [], "state": "done"})

    def _answer(self, document: dict[str, object]) -> None:
        answer = json.dumps(document).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def malicious() -> Iterator[tuple[str, list[bytes]]]:
    bodies: list[bytes] = []
    handler = type("Handler", (_Malicious,), {"bodies": bodies})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()
        thread.join()


def test_a_server_is_sent_only_what_the_user_named(
    tmp_path: Path, malicious: tuple[str, list[bytes]]
) -> None:
    url, bodies = malicious
    clew = Project(
        tmp_path,
        CLEW_SERVER=url,
        CLEW_TOKEN="t",
        init=False,
        **{NAME: MINE, "GIVEN": "given-value"},
    )
    ran = subprocess.run(
        [sys.executable, "-m", "clew", "repeat", "e1", "--secret", "GIVEN"],
        env=clew.environment,
        cwd=clew.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    assert ran.returncode == 2
    sent = b"".join(bodies)
    assert b"given-value" in sent
    assert MINE.encode() not in sent
    assert clew.environment["HOME"].encode() + b'"' not in sent


# -- what is shown of a difference


def test_a_difference_shows_no_secret(tmp_path: Path) -> None:
    """Output that was redirected to a file is compared as a file, and its lines are shown."""
    clew = Project(tmp_path, HF_TOKEN="the-first-secret-value")
    line = "echo $HF_TOKEN > printed; echo ${#HF_TOKEN} > length"
    clew("exec", "--", "sh", "-c", line)
    (tmp_path / "other").write_text("another-value")
    ran = clew("repeat", "e1", "--secret", f"HF_TOKEN={tmp_path / 'other'}", status=3)
    assert "another-value" not in ran.stdout + ran.stderr
    assert "+***" in ran.stderr
    assert "candidate: variable: the secret HF_TOKEN has another value" in ran.stderr
    assert not {"random", "clock"} & set(ran.stderr.split())


def test_a_secret_that_cannot_be_compared_is_a_candidate(tmp_path: Path) -> None:
    """In the command, whose secrets have no digests; and in a record with another project's key."""
    line = "echo ${#1} ${#MY_TOKEN} > out"
    clew = Project(tmp_path / "one", MY_TOKEN="the-first-secret-value")
    clew("exec", "--", "sh", "-c", line, "--password", "of-the-first")
    shown = clew("show", "e1").stdout
    assert "redacted    variables MY_TOKEN; words 4 (PASSWORD)\n" in shown
    clew("push", str(tmp_path / "remote"))
    other = Project(tmp_path / "two", MY_TOKEN="other-value", PASSWORD="short!")
    other("pull", str(tmp_path / "remote"))
    given = ("--secret", "MY_TOKEN", "--secret", "PASSWORD")
    causes = other.json("repeat", "e1", *given, status=3)["divergence"]["causes"]
    assert {cause["detail"] for cause in causes} >= {
        "argument 4: the secret PASSWORD was provided again and may differ",
        "the secret MY_TOKEN was provided again and may differ",
    }
    assert {"random", "clock"} <= {cause["cause"] for cause in causes}


def test_outputs_that_differ_only_in_masked_secrets_are_equivalent(tmp_path: Path) -> None:
    """The first run keeps what it prints of a credential file, and a repeat masks it."""
    clew = Project(tmp_path)
    clew.write(".env", "API_KEY=a-value-of-the-env-file\n")
    clew("exec", "--", "sh", "-c", "cat .env")
    done = clew.json("repeat", "e1")
    assert done["verdict"] == "equivalent"
    assert [one["rule"] for one in done["differences"]] == ["secrets"]
    assert "a-value-of-the-env-file" not in json.dumps(done)


def test_a_server_gives_none_of_its_own_variables(tmp_path: Path) -> None:
    there = Project(tmp_path / "there")
    there.environment[NAME] = MINE
    with run_server(there) as server:
        clew = Project(tmp_path, init=False, **server.variables, **{NAME: THEIRS})
        clew("exec", "--", "sh", "-c", f"echo ${{#{NAME}}}")
        del clew.environment[NAME]
        assert clew.error("repeat", "e1", status=2)[0] == "secrets-needed"
