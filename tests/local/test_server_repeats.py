"""What runs again runs on the server, and is seen from here as if it ran here."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.driver import CLEW
from tests.local.local_and_remote import LocalAndRemote, start_local_and_remote
from tests.wait import wait_until


@pytest.fixture
def both(tmp_path: Path) -> Iterator[LocalAndRemote]:
    with start_local_and_remote(tmp_path) as found:
        yield found


def test_a_file_is_brought_in(both: LocalAndRemote) -> None:
    both.write("raw.txt", "3\n1\n2\n")
    assert both.local.command("exec", "--", "sort", "raw.txt").returncode == 0
    assert both.run_remote("exec", "--", "sort", "raw.txt").returncode == 0
    both.write("other.txt", "b\na\n")
    assert both.run_both("repeat", "e2", "--set", "1=other.txt", status=3) == "a\nb\n"
    both.run_both("repeat", "e2", "--set", "1=other.txt", "--json", status=3)
    both.run_both("given", "other.txt", "repeat", "e2", "%1", status=3)
    both.run_both("repeat", "e2", "--set", "1=nowhere.txt", status=3)


def test_a_file_of_the_server_is_not_brought_in(both: LocalAndRemote) -> None:
    """A word that names a file there, but none here, is a word."""
    (both.served / "there.txt").write_text("of the server\n")
    both.write("raw.txt", "1\n")
    assert both.run_remote("exec", "--", "cat", "raw.txt").returncode == 0
    ran = both.run_remote("repeat", "e2", "--set", "1=there.txt")
    assert (ran.returncode, ran.stdout) == (3, b"")


def test_a_large_file_travels_by_chunk(both: LocalAndRemote) -> None:
    large = "".join(f"{number * number}\n" for number in range(300_000))
    both.write("raw.txt", large)
    assert both.run_remote("exec", "--", "wc", "-c", "raw.txt").returncode == 0
    (both.remote_folder / "other.txt").write_text("0\n" + large)
    before = both.metric("clew_ingest_bytes_total")
    ran = both.run_remote("repeat", "e2", "--set", "2=other.txt")
    assert ran.stdout == f"{len(large) + 2} other.txt\n".encode()
    assert 0 < both.metric("clew_ingest_bytes_total") - before < len(large) / 10


def test_output_is_live_and_each_where_it_belongs(both: LocalAndRemote) -> None:
    """It waits for a file that is there only once its first line has been seen here."""
    both.write(
        "loud.sh", 'echo first; echo oh >&2; if [ -n "$1" ]; then sleep 600; fi; echo last\n'
    )
    both.sh("sh loud.sh", "--name", "loud")
    assert both.run_both("repeat", "loud") == "first\nlast\n"
    words = [*CLEW, "repeat", "loud", "--set", "2=sh loud.sh 617"]
    slow = subprocess.Popen(
        words,
        cwd=both.remote_folder,
        env=both.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert slow.stdout is not None
    assert slow.stderr is not None
    assert slow.stdout.readline() == b"first\n"
    assert slow.stderr.readline() == b"oh\n"
    assert slow.poll() is None  # its end is ten minutes away
    slow.terminate()
    slow.communicate()
    wait_until("its end there", lambda: not _sleeping())
    wait_until(
        "its record", lambda: "running" not in [one["state"] for one in both.remote_json("list")]
    )


def _sleeping() -> bool:
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return "sleep 617" in found.stdout.splitlines()


def test_bytes_that_are_no_text_come_as_they_are(both: LocalAndRemote) -> None:
    both.write("bytes.sh", "printf '\\377\\000\\n\\r'; printf '%070000d' 7\n")
    both.sh("sh bytes.sh", "--name", "bytes")
    ran = both.run_remote("repeat", "bytes")
    assert ran.stdout == b"\xff\x00\n\r" + b"7".rjust(70_000, b"0")


def test_what_it_left_is_put_here(both: LocalAndRemote) -> None:
    both.sh("mkdir -p a; echo one > a/one; echo two > two")
    both.run_both("repeat", "e2", "--keep", "kept")
    assert (both.read("kept/a/one"), both.read("kept/two")) == ("one\n", "two\n")
    both.run_both("repeat", "e2", "--incremental", "--json")


def test_secrets_are_those_that_the_user_names(both: LocalAndRemote) -> None:
    """And are kept nowhere: not in the record, not in the log."""
    secret = "hunter2-of-whoever-asks"
    with_it = {**both.environment, "DOOR_PASSWORD": secret}
    words = ("exec", "--name", "door", "--", "sh", "-c", "echo ${#DOOR_PASSWORD} $DOOR_PASSWORD")
    assert both.run_remote(*words, env=with_it).returncode == 0
    without = both.remote_json("repeat", "door")["error"]
    assert "DOOR_PASSWORD" in without["message"]
    assert both.run_remote("repeat", "door", env=with_it).returncode == 2
    again = both.run_remote("repeat", "door", "--secret", "DOOR_PASSWORD", env=with_it)
    assert (again.returncode, again.stdout) == (0, f"{len(secret)} ***\n".encode())
    assert secret not in both.server.log.read_text()
    assert secret.encode() not in both.run_remote("cat", "e3:stdout").stdout
    found = subprocess.run(["grep", "-rl", secret, both.served / ".clew"], capture_output=True)
    assert found.stdout == b""


# -- recreate


@pytest.fixture
def chain(both: LocalAndRemote) -> LocalAndRemote:
    """raw.txt -e2-> a.mid -e3-> b.mid -e4-> c.txt; of the .mid files only digests are kept."""
    both.write("raw.txt", "3\n1\n2\n")
    for line in ("sort raw.txt > a.mid", "cat a.mid a.mid > b.mid", "wc -l < b.mid > c.txt"):
        both.sh(line, "--exclude", "*.mid")
    return both


def test_a_file_is_made_again_there_and_put_here(chain: LocalAndRemote) -> None:
    chain.remove("a.mid", "b.mid", "raw.txt")
    planned = chain.run_both("recreate", "b.mid", "--dry-run", "--json")
    assert [run["execution"] for run in planned["runs"]] == ["e2", "e3"]
    assert not (chain.remote_folder / "b.mid").exists()
    assert chain.run_both("recreate", "e3:b.mid").count("makes") == 2
    assert chain.read("b.mid") == "1\n2\n3\n1\n2\n3\n"
    assert [one["id"] for one in chain.remote_json("list")[::-1]] == [f"e{n}" for n in range(1, 7)]


def test_unchanged_local_files_are_sent(chain: LocalAndRemote) -> None:
    """The server has never seen a.mid; this machine has it."""
    chain.remove("b.mid", "raw.txt")
    done = chain.run_both("recreate", "b.mid", "--json")
    assert [run["execution"] for run in done["runs"]] == ["e3"]
    assert done["taken"] == ["HERE/a.mid"]
    assert chain.read("b.mid") == "1\n2\n3\n1\n2\n3\n"


def test_what_is_stored_is_taken(chain: LocalAndRemote) -> None:
    chain.remove("c.txt")
    chain.run_both("recreate", "c.txt", "--to", "back.txt")
    assert chain.read("back.txt") == "6\n"
    chain.write("c.txt", "by hand\n")
    chain.run_both("recreate", "e4:c.txt", status=4)  # what is there now is stored nowhere
    chain.run_both("recreate", "e4:c.txt", "--yes")
    assert chain.read("c.txt") == "6\n"


def test_an_execution_that_cannot_be_recreated_says_why(chain: LocalAndRemote) -> None:
    chain.write("a.mid", "changed\n")
    chain.remove("b.mid")
    chain.sh("echo x > d.mid; cat d.mid > e.mid", "--exclude", "*.mid")
    chain.sh("cat made-by-hand.mid > f.txt || :", "--exclude", "*")
    chain.run_both("recreate", "nowhere.txt", status=5)
    chain.run_both("recreate", "e2", status=2)
    chain.write("by-hand.mid", "1\n")
    chain.sh("cat by-hand.mid > g.mid", "--exclude", "*.mid")
    chain.remove("by-hand.mid", "g.mid")
    chain.run_both("recreate", "g.mid", status=5)


def test_what_comes_out_otherwise_is_not_put(both: LocalAndRemote) -> None:
    both.sh("date +%N > now.mid", "--exclude", "*.mid")
    both.remove("now.mid")
    ran = both.run_remote("recreate", "now.mid")
    assert ran.returncode == 3
    assert b"was recreated with other content: nothing was written" in ran.stderr
    assert not (both.remote_folder / "now.mid").exists()
