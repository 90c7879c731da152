"""The value of a secret variable is nowhere under `.clew`, however hard the command tries."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local.processes import TrackedProject, is_private, kill, wait_for_trace
from tests.local.recorded_bytes import read_recorded_bytes

SECRETS = {
    "DB_PASSWORD": "correct-horse-battery",
    "SERVICE_TOKEN": "tok_1234567890abcdef",
    "MY_OWN": "asked-for-by-the-caller",
    "DATABASE_URL": "postgres://me:pass-in-the-url@db/x",
}
INNER = "only-the-child-knows-it"
TYPED = "typed-after-an-option"
FILED = "kept-in-a-credential-file"
LINE = """
echo $DB_PASSWORD; echo $SERVICE_TOKEN >&2; printf %s $MY_OWN; echo
/bin/echo --password=$DB_PASSWORD $SERVICE_TOKEN $MY_OWN $DATABASE_URL > /dev/null
env sh -c 'cat data > copy'
"""


@pytest.fixture
def clew(tmp_path: Path) -> Iterator[TrackedProject]:
    clew = TrackedProject(tmp_path)
    clew.write("data", "some data\n")
    clew.environment |= {**SECRETS, "CLEW_REDACT": "MY_*"}
    yield clew
    clew.stop()


def betrayed(clew: TrackedProject) -> list[tuple[str, str]]:
    wanted = [*SECRETS.values(), INNER, TYPED, FILED, "pass-in-the-url"]
    return [
        (secret, where)
        for where, data in read_recorded_bytes(clew)
        for secret in wanted
        if secret.encode() in data
    ]


def test_secrets_stay_out(clew: TrackedProject) -> None:
    ran = clew("exec", "--", "sh", "-c", LINE)
    assert SECRETS["DB_PASSWORD"] in ran.stdout  # the command itself is left alone
    assert SECRETS["SERVICE_TOKEN"] in ran.stderr
    shown = clew.json("show", "e1", "--detail")
    assert shown["environment"]["variables"]["DB_PASSWORD"] == "***"
    assert any("--password=***" in process["command"] for process in shown["tree"])
    assert betrayed(clew) == []


def test_secrets_on_the_command_line_stay_out(clew: TrackedProject) -> None:
    clew("exec", "--", "/bin/echo", SECRETS["DB_PASSWORD"], f"x={SECRETS['MY_OWN']}")
    assert clew.json("list")[::-1][0]["command"] == ["/bin/echo", "***", "x=***"]
    assert betrayed(clew) == []


def test_secrets_in_options_stay_out(clew: TrackedProject) -> None:
    """Typed for the command itself, or for one that it starts: they were in no variable."""
    clew.write("tool", "echo $2 ${#2}; /bin/echo $2 >/dev/null; /bin/true --api-key=$OTHER$INNER\n")
    clew.environment |= {"OTHER": INNER[:8], "INNER": INNER[8:]}
    words = ("exec", "--", "sh", "tool", "--password", TYPED)
    assert clew(*words).stdout == f"{TYPED} {len(TYPED)}\n"
    shown = clew.json("show", "e1")
    assert shown["command"] == ["sh", "tool", "--password", "***"]
    commands = [process["command"] for process in shown["tree"]]
    assert ["/bin/echo", "***"] in commands
    assert ["/bin/true", "--api-key=***"] in commands
    assert betrayed(clew) == []


def test_a_secret_in_an_option_is_asked_for_again(clew: TrackedProject) -> None:
    clew.write("tool", "echo $2 ${#2} > left; echo $2\n")
    clew("exec", "--", "sh", "tool", "--vault-password", TYPED)
    _, message, _ = clew.error("repeat", "e1", status=2)
    assert "VAULT_PASSWORD" in message
    assert clew("repeat", "e1", "--set", "3=in-its-place", status=3).stdout == "***\n"
    assert clew("cat", "e2:left").stdout == "in-its-place 12\n"
    clew.environment["VAULT_PASSWORD"] = TYPED
    ran = clew("repeat", "e1")
    assert ran.stdout == "***\n"
    assert clew.json("list")[::-1][0]["command"] == ["sh", "tool", "--vault-password", "***"]
    assert clew("cat", "e3:left").stdout == f"{TYPED} {len(TYPED)}\n"


HOME_FILES = (
    ".aws/credentials",
    ".netrc",
    ".ssh/id_ed25519",
    ".kube/config",
    ".docker/config.json",
)
READS = """
cat .env $HOME/.aws/credentials "$DB_PASSWORD_FILE" | wc -c
cat linked/.netrc < $HOME/.netrc > /dev/null
for file in .ssh/id_ed25519 .kube/config .docker/config.json; do sort $HOME/$file > /dev/null; done
cat $HOME/.pgpass > /dev/null; echo more >> $HOME/.pgpass
cat plain > copy
"""


def test_credential_files_are_not_stored(clew: TrackedProject, tmp_path: Path) -> None:
    """Only their digests: however they are opened, and also when the command changes one."""
    home = tmp_path / "home"
    for name in (*HOME_FILES, ".pgpass", "named", "elsewhere/netrc"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"{name} is {FILED}\n")
    (clew.folder / "linked").mkdir()
    (clew.folder / "linked/.netrc").symlink_to(home / "elsewhere/netrc")
    clew.write(".env", f"A={FILED}\n")
    clew.write("plain", "not a secret\n")
    clew.environment |= {"HOME": str(home), "DB_PASSWORD_FILE": str(home / "named")}
    clew("exec", "--", "sh", "-c", READS)
    assert betrayed(clew) == []
    files = {file["path"]: file for file in clew.json("show", "e1", "--detail")["files"]}
    for name in (*HOME_FILES, ".pgpass", "named", "elsewhere/netrc"):
        assert files[str(home / name)]["digest"], name
    assert clew("cat", "e1:plain").stdout == "not a secret\n"
    clew.error("cat", "e1:.env", status=5)
    ran = clew("repeat", "e1", status=3)  # what it appended to is another file now
    assert f"it gets your own {home / '.aws/credentials'}\n" in ran.stderr
    assert f"{home / '.pgpass'}, which has changed" in ran.stderr
    assert betrayed(clew) == []
    again = {file["path"]: file for file in clew.json("show", "e2", "--detail")["files"]}
    for name in (*HOME_FILES, "named", "elsewhere/netrc"):
        path = str(home / name)
        assert again[path]["digest"] == files[path]["digest"], name
    assert (home / ".pgpass").read_text().endswith("\nmore\n")  # the repeat changed its own copy
    (home / ".aws/credentials").unlink()
    code, message, hint = clew.error("repeat", "e1", status=2)
    assert (code, message.count("/home/")) == ("secrets-needed", 1)
    assert f"--secret {home / '.aws/credentials'}=FILE" in hint


def test_a_credential_file_goes_with_a_repeat_that_is_killed(clew: TrackedProject) -> None:
    clew.write(".env", f"A={FILED}\n")
    clew.write("tool", "cat .env > /dev/null; echo on; sleep $1\n")
    clew("exec", "--", "sh", "tool", "0")
    process = clew.start("repeat", "e1", "--set", "2=1000")
    assert process.stdout is not None
    assert process.stdout.readline() == "on\n"
    assert betrayed(clew) != []  # it is there for the command
    assert is_private(clew.folder / ".clew" / "spool")
    kill(process)
    clew.wait_until_ended()
    clew("exec", "--", "true")
    assert betrayed(clew) == []


def test_a_credential_file_is_given_to_make_a_file_again(clew: TrackedProject) -> None:
    clew.write(".env", f"A={FILED}\n")
    clew("exec", "--exclude", "*/out", "--", "sh", "-c", "wc -c .env > out")
    (clew.folder / "out").unlink()
    clew("recreate", "e1:out")
    assert (clew.folder / "out").read_text().endswith(" .env\n")
    assert betrayed(clew) == []
    (clew.folder / "out").unlink()
    clew("rm", "e2", "--yes")
    clew("gc", "--yes")
    (clew.folder / ".env").unlink()
    code, message, _ = clew.error("recreate", "e1:out", status=2)
    assert (code, ".env" in message) == ("secrets-needed", True)


def test_a_project_decides_which_files_are_credentials(clew: TrackedProject) -> None:
    config = clew.folder / ".clew/config.toml"
    clew.write(".env", "A=1\n")
    config.write_text(config.read_text().replace("# credentials = []", 'credentials = ["*/mine"]'))
    clew.write("mine", FILED)
    clew("exec", "--", "cat", ".env", "mine")
    assert clew("cat", "e1:.env").stdout == "A=1\n"
    clew.error("cat", "e1:mine", status=5)
    config.write_text(config.read_text().replace('["*/mine"]', '"mine"'))
    _, message, _ = clew.error("list", status=1)
    assert "record.credentials is no list" in message


def test_a_subprocess_has_secrets_of_its_own(clew: TrackedProject) -> None:
    """They were in no variable of ours; the name says what they are."""
    program = (
        "import os, subprocess\n"
        f"own = {{**os.environ, 'THEIR_PASSWORD': '{INNER[:10]}' + '{INNER[10:]}'}}\n"
        "subprocess.run(['/bin/echo', own['THEIR_PASSWORD']], env=own, stdout=-3)\n"
    )
    clew("exec", "--", "python3", "-c", program)
    assert betrayed(clew) == []


def test_secrets_stay_out_after_a_kill(clew: TrackedProject) -> None:
    """The trace holds them until it is told: for its owner's eyes only, and not for long."""
    os.umask(0)
    try:
        process = clew.start("exec", "--", "sh", "-c", f"{LINE}exec sleep 1000")
        assert process.stdout is not None
        assert process.stdout.readline()
        wait_for_trace(clew, b"/sleep")
        kill(process)
    finally:
        os.umask(0o022)
    clew.wait_until_ended()
    assert is_private(clew.folder / ".clew" / "spool")
    assert (clew.folder / ".clew").stat().st_mode & 0o077 == 0
    for name in (*SECRETS, "CLEW_REDACT"):
        del clew.environment[name]
    clew("exec", "--", "true")
    assert clew.states() == {"e1": "broken", "e2": "done"}
    assert len(clew.json("show", "e1")["tree"]) > 3
    assert betrayed(clew) == []
