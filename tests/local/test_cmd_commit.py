"""`clew commit`: what was changed in a checkout is run, recorded, and compared with its parent."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.driver import EXECUTION, Project
from tests.local.test_cmd_checkout import files, tree

PROGRAM = """\
import sys
from pathlib import Path
numbers = [int(line) for line in Path("numbers.txt").read_text().split()]
Path("sum.txt").write_text(f"{sum(numbers)}\\n")
print(len(numbers))
"""
KEYS = {"execution", "of", "verdict", "differences", "divergence", "ran", "reused"}


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Project:
    """e1 sums numbers.txt; it is checked out to work/."""
    clew = Project(tmp_path, **graph_in_turn)
    clew.write("numbers.txt", "1\n2\n")
    clew.write("sum.py", PROGRAM)
    clew("exec", "--", sys.executable, "sum.py")
    clew("checkout", "e1", "work")
    return clew


def cat(clew: Project, version: str) -> str:
    return clew("cat", version).stdout


def outputs(document: dict[str, Any]) -> set[str]:
    return {Path(one["path"]).name for one in document["differences"]}


def test_a_changed_file(clew: Project) -> None:
    clew.write("work/numbers.txt", "1\n2\n4\n")
    (clew.folder / "sum.txt").unlink()
    before = tree(clew.folder / "work")
    done = clew.json("commit", "work", "-m", "one more")
    assert done.keys() >= KEYS
    made = done["execution"]
    assert made.keys() >= EXECUTION
    assert (made["id"], made["kind"], made["parent"], made["collection"]) == (
        "e2",
        "modification",
        "e1",
        "e1",
    )
    assert (made["state"], made["command"][1:]) == ("done", ["sum.py"])
    assert (done["of"], done["verdict"], outputs(done)) == (
        "e1",
        "different",
        {"sum.txt", "stdout"},
    )
    assert [one["path"] for one in done["changes"]["modified"]] == ["numbers.txt"]
    assert (cat(clew, "e2:sum.txt"), cat(clew, "e2:stdout")) == ("7\n", "3\n")
    assert cat(clew, "e2:numbers.txt@input") == "1\n2\n4\n"
    assert [(n["key"], n["value"]) for n in clew.json("note", "e2")["notes"]] == [
        ("message", "one more")
    ]
    assert not (clew.folder / "sum.txt").exists()  # it ran in isolation
    after = tree(clew.folder / "work")
    assert before.pop(".clew-checkout") != after.pop(".clew-checkout")
    assert after == before
    found = clew.json("status", "work")
    assert (found["execution"], found["modified"]) == ("e2", [])


def test_one_after_the_other(clew: Project) -> None:
    clew.write("work/numbers.txt", "5\n")
    clew("commit", cwd=clew.folder / "work")
    clew.write("work/sum.py", PROGRAM.replace("sum(", "max("))
    done = clew.json("commit", cwd=clew.folder / "work")
    assert (done["execution"]["id"], done["of"], done["execution"]["collection"]) == (
        "e3",
        "e2",
        "e1",
    )
    assert cat(clew, "e3:sum.txt") == "5\n"
    assert done["verdict"] == "identical"


def test_nothing_was_changed(clew: Project) -> None:
    os.utime(clew.folder / "work/sum.py")
    done = clew.json("commit", "work")
    assert (done["execution"]["id"], done["of"], done["verdict"]) == ("e1", "e1", "identical")
    assert (done["ran"], done["differences"]) == ([], [])
    said = clew("commit", "work")
    assert (said.stdout, said.stderr) == ("", "clew: no changes since e1; nothing was run\n")
    assert len(clew.json("list")) == 1


def test_added_and_deleted_files(clew: Project, tmp_path: Path) -> None:
    clew.write(
        "work/sum.py",
        "import os\n"
        "for p in ('numbers.txt', 'more/own.txt', 'link', '/var/opt/new.txt'):\n"
        "    print(p, open(p).read().strip() if os.path.exists(p) else 'none')\n"
        "print(oct(os.stat('more/tool').st_mode & 0o777))\n",
    )
    (clew.folder / "work/numbers.txt").unlink()
    clew.write("work/more/own.txt", "own\n")
    clew.write("work/more/tool", "tool\n").chmod(0o751)
    clew.write("work/_outside/var/opt/new.txt", "outside\n")
    (clew.folder / "work/link").symlink_to("more/own.txt")
    done = clew.json("commit", "work")
    assert cat(clew, "e2:stdout").splitlines() == [
        "numbers.txt none",
        "more/own.txt own",
        "link own",
        "/var/opt/new.txt outside",
        "0o751",
    ]
    assert {one["path"] for one in done["changes"]["added"]} == {
        "more/own.txt",
        "more/tool",
        "link",
        "_outside/var/opt/new.txt",
    }
    assert [one["path"] for one in done["changes"]["deleted"]] == ["numbers.txt"]
    assert clew.json("status", "work")["added"] == []


def test_added_files_that_were_not_read_stay(clew: Project) -> None:
    """It is in the next run all the same, and no switch of the checkout takes it away."""
    clew.write("work/later.txt", "10\n")
    clew.write("work/numbers.txt", "3\n")
    clew("commit", "work")
    clew("gc", "--yes")
    assert "later.txt" in clew.error("checkout", "e1", "work", status=4)[1]
    clew.write("work/sum.py", PROGRAM.replace("numbers.txt", "later.txt"))
    clew("commit", "work")
    assert cat(clew, "e3:sum.txt") == "10\n"
    (clew.folder / "work/numbers.txt").unlink()
    clew.write("work/sum.py", PROGRAM)
    assert clew.json("commit", "work", status=1)["execution"]["state"] == "failed"


def test_what_was_added_and_not_read_can_be_moved_away(clew: Project) -> None:
    clew.write("work/notes.txt", "mine\n")
    clew("commit", "work")
    (clew.folder / "work/notes.txt").rename(clew.folder / "notes.txt")
    clew("checkout", "e1", "work")
    assert set(files(clew.folder / "work")) == {"numbers.txt", "sum.py"}


def test_what_an_early_end_did_not_meet_is_there_again(clew: Project) -> None:
    clew.write("work/sum.py", "raise SystemExit\n")
    clew("commit", "work")
    clew.write("work/sum.py", PROGRAM)
    assert clew.json("commit", "work")["execution"]["state"] == "done"
    assert cat(clew, "e3:sum.txt") == "3\n"


def test_a_failed_command_is_a_record_and_the_checkout_stays(clew: Project) -> None:
    clew.write("work/numbers.txt", "one\n")
    state = (clew.folder / "work/.clew-checkout").read_bytes()
    done = clew.json("commit", "work", "-m", "oops", status=1)
    assert (done["execution"]["state"], done["execution"]["status"]) == ("failed", 1)
    assert (done["execution"]["kind"], done["execution"]["parent"]) == ("modification", "e1")
    assert "exit status" in outputs(done)
    assert clew.json("note", "e2")["notes"][0]["value"] == "oops"
    assert (clew.folder / "work/.clew-checkout").read_bytes() == state
    assert [one["path"] for one in clew.json("status", "work")["modified"]] == ["numbers.txt"]
    ran = clew("commit", "work", status=1)
    assert "the checkout stays at e1" in ran.stderr
    assert "ValueError" in ran.stderr
    clew.write("work/numbers.txt", "1\n")
    assert clew.json("commit", "work")["of"] == "e1"


def test_the_output_of_the_command_is_shown(clew: Project) -> None:
    clew.write("work/numbers.txt", "7\n8\n9\n")
    ran = clew("commit", "work")
    assert ran.stdout == "3\n"
    assert "e2 modifies e1: different" in ran.stderr


def test_links_lead_where_they_led(clew: Project) -> None:
    """What is added below a folder that was a link goes to where that leads."""
    clew.write("v1/x.txt", "x\n")
    (clew.folder / "current").symlink_to("v1")
    clew.shell("cat current/*; ls v1", "--name", "linked")
    clew("checkout", "linked")
    assert set(files(clew.folder / "linked")) == {"v1/x.txt"}
    clew.write("linked/current/y.txt", "y\n")
    clew("commit", "linked")
    assert cat(clew, "e3:stdout") == "x\ny\nx.txt\ny.txt\n"


def test_no_changes_and_no_record(clew: Project) -> None:
    clew.write("work/numbers.txt", "3\n")
    clew("rm", "e1", "--yes")
    code, message, _ = clew.error("commit", "work", status=5)
    assert code == "not-found" and "e1" in message and "removed" in message
    assert clew.json("status", "work")["execution"] == "e1"


def test_two_commits_at_the_same_time(clew: Project) -> None:
    """The second is told; neither spoils the other."""
    clew.write("work/sum.py", "print('ready', flush=True)\nwhile True: pass\n")
    first = clew.start("commit", "work")
    assert first.stdout is not None
    first.stdout.readline()
    code, message, _ = clew.error("commit", "work", status=1)
    assert code == "busy" and "work" in message
    assert clew.error("checkout", "e1", "work", status=1)[0] == "busy"
    first.terminate()
    first.communicate()
    assert clew.json("status", "work")["execution"] == "e1"


def test_a_message_that_cannot_be_noted_stops_it_before_it_starts(clew: Project) -> None:
    clew.write("work/numbers.txt", "3\n")
    assert clew.error("commit", "work", "-m", "x" * 10_001, status=2)[0] == "usage"
    assert len(clew.json("list")) == 1


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_an_unprivileged_user(tmp_path: Path) -> None:
    """Recorded by root, changed and run by somebody else."""
    somebody = 61234
    clew = Project(tmp_path / "theirs")
    clew.write("numbers.txt", "1\n2\n")
    clew.shell("sort -r numbers.txt > sorted.txt; id -u")
    for path in [clew.folder.parent, *clew.folder.parent.rglob("*")]:
        os.lchown(path, somebody, somebody)
    for path in [*tmp_path.parents, tmp_path]:
        if path.stat().st_uid == 0 and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)
    become = ["setpriv", f"--reuid={somebody}", f"--regid={somebody}", "--clear-groups"]
    become += ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]  # to reach Python

    def run(*words: str) -> str:
        ran = subprocess.run(
            [*become, sys.executable, "-m", "clew", *words],
            cwd=clew.folder,
            env=clew.environment,
            capture_output=True,
            text=True,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    run("checkout", "e1", "work")
    numbers = clew.folder / "work/numbers.txt"
    assert numbers.stat().st_uid == somebody
    numbers.write_text("1\n2\n3\n")
    done = json.loads(run("commit", "work", "--json"))
    assert done["execution"]["state"] == "done"
    assert run("cat", "e2:sorted.txt") == "3\n2\n1\n"
    run("checkout", "e1", "work")
    assert numbers.read_text() == "1\n2\n"


def test_only_what_the_change_concerns_runs(tmp_path: Path, graph_in_turn: dict[str, str]) -> None:
    """Four steps, the third edited: two run, and the record is whole all the same."""
    clew = Project(tmp_path, **graph_in_turn)
    clew.write("0.txt", "start\n")
    step = "import sys\nopen(sys.argv[2], 'w').write(open(sys.argv[1]).read() + {!r})\n"
    words = []
    for number in range(1, 5):
        clew.write(f"{number}.py", step.format(f"{number}\n"))
        words.append(f"{sys.executable} {number}.py {number - 1}.txt {number}.txt\n")
    clew.write("run.sh", "".join(words))
    clew("exec", "--", "sh", "run.sh")
    clew("checkout", "e1", "work")
    clew.write("work/3.py", step.format("three\n"))
    done = clew.json("commit", "work")
    scripts = {1: "1.py", 2: "2.py", 3: "3.py", 4: "4.py"}
    assert {one["command"][1] for one in done["reused"]} == {scripts[1], scripts[2]}
    assert {one["command"][1] for one in done["ran"]} >= {scripts[3], scripts[4]}
    assert cat(clew, "e2:4.txt") == "start\n1\n2\nthree\n4\n"
    assert cat(clew, "e2:2.txt") == "start\n1\n2\n"
    shown = clew.json("show", "e2", "--detail")
    assert len(shown["tree"]) == len(clew.json("show", "e1")["tree"])
    assert outputs(done) == {"3.txt", "4.txt"}
