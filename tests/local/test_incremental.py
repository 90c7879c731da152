"""Incremental runs: what is still valid does not run again, and all comes out as if it had."""

import os
import pty
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project

from clew import db
from clew.prov.graph import Graph
from clew.prov.queries.execution_record import ExecutionRecord, load_record

STEP = """\
import sys
before = open("{before}").read()
open("{after}", "w").write(before + "{word}\\n")
print("{word}")
"""


class Steps(Project):
    """A project with one recording, e1, that is checked out to work/."""

    def record(self, *words: str, **files: str) -> None:
        for name, text in files.items():
            self.write(name, text)
        self("exec", "--", *words)
        self("checkout", "e1", "work")

    def script(self, text: str, **files: str) -> None:
        self.write("run.sh", text.replace("python", sys.executable))
        self.record("sh", "run.sh", **files)

    def edit(self, name: str, text: str) -> None:
        self.write(f"work/{name}", text.replace("python", sys.executable))

    def commit(self, *, status: int = 0) -> dict[str, Any]:
        document: dict[str, Any] = self.json("commit", "work", status=status)
        return document

    def again(self) -> dict[str, Any]:
        document: dict[str, Any] = self.json("repeat", "e1", "--incremental")
        return document

    def left(self, execution: str, name: str) -> str:
        return self("cat", f"{execution}:{self.folder / name}").stdout

    def printed(self, execution: str, stream: str = "stdout") -> str:
        """All of it, without the last line end; nothing was kept of nothing."""
        process = self.start("cat", f"{execution}:{stream}")
        return process.communicate()[0].rstrip("\n")

    def told(self, execution: str) -> ExecutionRecord:
        address = self.environment.get("CLEW_GRAPH")
        text = (self.folder / ".clew" / "config.toml").read_text()
        uid = next(line for line in text.splitlines() if line.startswith("uid")).split('"')[1]
        with db.connect(self.folder / ".clew" / "graph.db", address=address) as connection:
            return load_record(Graph(connection, uid), execution)


@pytest.fixture
def steps(tmp_path: Path, graph_in_turn: dict[str, str]) -> Steps:
    return Steps(tmp_path, **graph_in_turn)


def names(entries: list[dict[str, Any]]) -> list[str]:
    """The programs, by the last of their words that says anything."""
    return [Path(entry["command"][-1]).name for entry in entries]


def whys(document: dict[str, Any]) -> dict[str, str]:
    return {Path(entry["command"][-1]).name: entry["why"] for entry in document["ran"]}


def four(steps: Steps) -> None:
    files = {
        f"s{n}.py": STEP.format(before=f"f{n - 1}", after=f"f{n}", word=f"step {n}")
        for n in range(1, 5)
    }
    steps.script("".join(f"python s{n}.py\n" for n in range(1, 5)), f0="start\n", **files)


def facts(record: ExecutionRecord) -> tuple[Any, ...]:
    """Commands, and which paths were used, made and looked at by which of them."""

    def edges(kind: str) -> set[tuple[str, str]]:
        return {
            (
                " ".join(record.activities[edge.activity].command),
                record.versions[edge.version].locator,
            )
            for edge in getattr(record, kind)
            if not record.versions[edge.version].locator.startswith("stream:")
        }

    looked = {
        (" ".join(record.activities[k.activity].command), k.kind, k.locator) for k in record.looked
    }
    commands = [process.command for process in record.processes]
    return commands, edges("used"), edges("generated"), edges("invalidated"), looked


def test_four_steps_with_the_third_edited_run_two(steps: Steps) -> None:
    four(steps)
    steps.edit("s3.py", STEP.format(before="f2", after="f3", word="other"))
    done = steps.commit()
    assert names(done["ran"]) == ["run.sh", "s3.py", "s4.py"]
    assert whys(done) == {
        "run.sh": "s3.py changed",
        "s3.py": "s3.py changed",
        "s4.py": "f3 changed",
    }
    assert [(Path(r["command"][-1]).name, r["from"]) for r in done["reused"]] == [
        ("s1.py", "e1.p2"),
        ("s2.py", "e1.p3"),
    ]
    assert steps.left("e2", "f4") == "start\nstep 1\nstep 2\nother\nstep 4\n"
    assert steps.printed("e2") == "step 1\nstep 2\nother\nstep 4"


def test_nothing_changed_runs_nothing_and_tells_all(steps: Steps) -> None:
    four(steps)
    done = steps.again()
    assert (done["verdict"], done["ran"], names(done["reused"])) == ("identical", [], ["run.sh"])
    before, after = steps.told("e1"), steps.told("e2")
    assert facts(before) == facts(after)
    assert [p.facets["reused_from"] for p in after.processes] == [p.uid for p in before.processes]
    assert len({p.uid for p in (*before.processes, *after.processes)}) == 10
    assert {v.digest for v in after.left.values()} == {v.digest for v in before.left.values()}
    assert steps.json("fsck")["ok"]


def test_what_was_reused_can_be_reused(steps: Steps) -> None:
    four(steps)
    steps.edit("s3.py", STEP.format(before="f2", after="f3", word="other"))
    steps.commit()
    steps("rm", "e1", "--yes")
    steps.edit("s4.py", STEP.format(before="f3", after="f4", word="last"))
    done = steps.commit()
    assert names(done["reused"]) == ["s1.py", "s2.py", "s3.py"]
    assert {r["from"].split(".")[0] for r in done["reused"]} == {"e2"}
    assert steps.printed("e3") == "step 1\nstep 2\nother\nlast"


def test_an_edit_without_effect_stops_there(steps: Steps) -> None:
    four(steps)
    steps.edit("s2.py", STEP.format(before="f1", after="f2", word="step 2") + "# a remark\n")
    done = steps.commit()
    assert names(done["ran"]) == ["run.sh", "s2.py"]
    assert done["verdict"] == "identical"


MAKEFILE = """\
all: prog
prog: main.o more.o
\tcc -o prog main.o more.o
main.o: main.c more.h
\tcc -c main.c
more.o: more.c more.h
\tcc -c more.c
"""


def test_make(steps: Steps) -> None:
    steps.record(
        "make",
        Makefile=MAKEFILE,
        **{
            "main.c": '#include "more.h"\nint main(void) { return more(); }\n',
            "more.c": '#include "more.h"\nint more(void) { return 0; }\n',
            "more.h": "int more(void);\n",
        },
    )
    steps.edit("more.c", '#include "more.h"\nint more(void) { return 3; }\n')
    done = steps.commit()
    ran = [" ".join(entry["command"]) for entry in done["ran"]]
    assert ran[0] == "make"
    assert "cc -c more.c" in ran
    assert "cc -o prog main.o more.o" in ran
    assert "cc -c main.c" in [" ".join(entry["command"]) for entry in done["reused"]]
    assert done["execution"]["status"] == 0


DRIVER = """\
import subprocess, sys
for step in ("one", "two", "three"):
    subprocess.run([sys.executable, step + ".py"], check=True)
with open("sorted", "w") as file:
    subprocess.run(["sort", "one.txt"], stdout=file, check=True)
with open("log", "w") as log:
    subprocess.run(["sort", "two.txt"], stdout=log, check=True)
    log.write("written after\\n")
told = subprocess.run(["cat", "three.txt"], capture_output=True, text=True).stdout
open("told", "w").write(told)
"""


def test_a_driver_in_python(steps: Steps) -> None:
    steps.write("drive.py", DRIVER)
    write = 'open("{0}.txt", "w").write("{1}\\n")\n'
    texts = {f"{name}.py": write.format(name, name) for name in ("one", "two", "three")}
    steps.record(sys.executable, "drive.py", **texts)
    steps.edit("three.py", write.format("three", "THREE"))
    done = steps.commit()
    assert names(done["reused"]) == ["one.py", "two.py", "one.txt"]
    assert whys(done) == {
        "drive.py": "three.py changed",
        "three.py": "three.py changed",
        "two.txt": f"others wrote to {steps.folder / 'log'} as well",
        "three.txt": "it is one end of a pipe",
    }
    assert steps.left("e2", "log") == "two\nwritten after\n"
    assert steps.left("e2", "sorted") == "one\n"
    assert steps.left("e2", "told") == "THREE\n"


def test_an_argument_that_changed(steps: Steps) -> None:
    steps.script("sh step.sh 1 2\nsh step.sh 3 4\n", **{"step.sh": 'echo "$@" > "out$1"\n'})
    steps.edit("run.sh", "sh step.sh 1 2\nsh step.sh 3 5\n")
    done = steps.commit()
    assert [entry["why"] for entry in done["ran"]] == ["run.sh changed", "its argument 3 changed"]
    assert steps.left("e2", "out3") == "3 5\n"


def test_a_variable_that_changed(steps: Steps) -> None:
    steps.script("export MODE=a\nsh step.sh\n", **{"step.sh": "echo $MODE\n"})
    steps.edit("run.sh", "export MODE=b\nsh step.sh\n")
    done = steps.commit()
    assert whys(done)["step.sh"] == "its variable MODE changed"
    assert steps.printed("e2") == "b"


def test_a_secret_that_changed(steps: Steps) -> None:
    steps.environment["API_TOKEN"] = "first-secret-of-all"
    steps.script(
        "sh step.sh\n", **{"step.sh": "case $API_TOKEN in first*) echo 1;; *) echo 2; esac\n"}
    )
    steps.edit("run.sh", "sh step.sh\ntrue\n")
    assert names(steps.commit()["reused"]) == ["step.sh"]
    steps.environment["API_TOKEN"] = "second-secret-of-all"
    steps.edit("run.sh", "sh step.sh\ntrue\ntrue\n")
    assert whys(steps.commit())["step.sh"] == "its variable API_TOKEN changed"
    assert steps.printed("e3") == "2"
    recorded = b"".join(p.read_bytes() for p in (steps.folder / ".clew").rglob("*") if p.is_file())
    assert b"secret-of-all" not in recorded


SIGHTS = {
    "existence": ("[ -e flag ] && echo yes || echo no", "true", "echo x > flag", "yes"),
    "names": ("echo d/*", "mkdir d; echo > d/a", "mkdir d; echo > d/a; echo > d/b", "d/a d/b"),
    "making": ("mkdir d 2>/dev/null && echo made || echo there", "mkdir d", "true", "made"),
    "removing": ("rmdir d 2>/dev/null && echo gone || echo stays", "mkdir d", "echo > d", "stays"),
    "emptiness": ("rmdir d && echo gone", "mkdir d", "mkdir d; echo > d/a", ""),
    "permission": ("[ -x t ] && echo can || echo not", ">t; chmod -x t", ">t; chmod +x t", "can"),
    "a link": ("cat l", "echo 1 >a; echo 2 >b; ln -s a l", "echo 1 >a; echo 2 >b; ln -s b l", "2"),
    "going in": ("cd d 2>/dev/null && echo in || echo out", "mkdir d", "true", "out"),
    "order": ("[ b -nt a ] && echo new", ">a; sleep 0.05; >b", ">b; sleep 0.05; >a", ""),
    "order of what did not run": (
        "[ b -nt a ] && echo newer || echo older",
        "sh b.sh; sleep 0.05; sh a.sh x",
        "sh a.sh y; sleep 0.05; sh b.sh",
        "newer",
    ),
    "umask": ("umask", "umask 022", "umask 077", "0077"),
}


@pytest.mark.parametrize(("step", "before", "after", "says"), SIGHTS.values(), ids=SIGHTS)
def test_what_a_step_sees(steps: Steps, step: str, before: str, after: str, says: str) -> None:
    """The step itself and the files it was started from are the same; what it sees is not."""
    more = {"a.sh": "echo $1 > a\n", "b.sh": "echo > b\n"}
    steps.script(f"{before}\nsh step.sh; true\n", **{"step.sh": f"{step}\n"}, **more)
    assert steps.printed("e1") != says
    steps.edit("run.sh", f"{after}\nsh step.sh; true\n")
    done = steps.commit()
    assert "step.sh" in names(done["ran"])
    assert steps.printed("e2") == says


CHANGES = """\
sh keep.sh > kept
sh keep.sh >> kept
mkdir -p d/e
mv moved d/e/here
rm removed
sh back.sh & wait
{ head -n 1; cat; } < lines > both
echo $(cat edited) > told
exit 3
"""


def test_every_kind_of_change(steps: Steps) -> None:
    """One edit at the end: what runs finds what did not run as if it had."""
    files = {"keep.sh": "echo out\necho err >&2\n", "back.sh": "ls d/e > names\n"}
    steps.write("run.sh", CHANGES)
    steps("init")
    for name in ("moved", "removed", "edited"):
        steps.write(name, f"{name}\n")
    steps.write("lines", "1\n2\n3\n")
    for name, text in files.items():
        steps.write(name, text)
    steps("exec", "--", "sh", "run.sh", status=3)
    steps("checkout", "e1", "work")
    steps.edit("edited", "EDITED\n")
    done = steps.commit(status=1)
    assert done["execution"]["status"] == 3
    reused = [" ".join(entry["command"]) for entry in done["reused"]]
    assert {"mkdir -p d/e", "mv moved d/e/here", "rm removed", "sh back.sh"} <= set(reused)
    assert reused.count("sh keep.sh") >= 1
    expected = {"kept": "out\nout\n", "names": "here\n", "both": "1\n2\n3\n", "told": "EDITED\n"}
    assert {name: steps.left("e2", name) for name in expected} == expected
    assert steps.printed("e2", "stderr") == "err\nerr"
    gone = [one for one in done["differences"] if one["kind"] in ("missing", "extra")]
    assert gone == []


def test_a_pinned_execution_is_reused_completely(steps: Steps) -> None:
    """What a process draws depends on its place among the others."""
    steps("init")
    steps.write("run.sh", "sh draw.sh\n")
    steps.write("draw.sh", "od -An -N4 -tx1 /dev/urandom\n")
    steps("exec", "--pin", "clock,random", "--", "sh", "run.sh")
    assert names(steps.again()["reused"]) == ["run.sh"]
    steps("checkout", "e1", "work")
    steps.edit("run.sh", "sh draw.sh\ntrue\n")
    assert "draw.sh" in names(steps.commit()["ran"])
    assert steps.printed("e3") == steps.printed("e1")


def test_appending_to_what_is_there_now(steps: Steps) -> None:
    steps.script("sh step.sh >> log\n", **{"step.sh": "echo new\n"})
    steps.edit("run.sh", "echo old > log\nsh step.sh >> log\n")
    done = steps.commit()
    assert names(done["reused"]) == ["step.sh"]
    assert steps.left("e2", "log") == "old\nnew\n"


def test_what_a_signal_ended_runs_again(steps: Steps) -> None:
    steps.script("sh step.sh\necho $?\n", **{"step.sh": "kill -9 $$\n"})
    steps.edit("run.sh", "sh step.sh\necho ended $?\n")
    done = steps.commit()
    assert whys(done)["step.sh"] == "a signal ended it"
    assert steps.printed("e2") == "ended 137"


def test_output_to_a_terminal(steps: Steps) -> None:
    steps("init")
    steps.write("run.sh", "sh one.sh\nsh two.sh\n")
    steps.write("one.sh", "echo one\n")
    steps.write("two.sh", "echo two\n")
    child, terminal = pty.fork()
    if not child:
        os.chdir(steps.folder)
        os.execve(
            sys.executable,
            [sys.executable, "-m", "clew", "exec", "sh", "run.sh"],
            steps.environment,
        )
    while True:
        try:
            if not os.read(terminal, 4096):
                break
        except OSError:
            break
    assert os.waitpid(child, 0)[1] == 0
    steps("checkout", "e1", "work")
    steps.edit("two.sh", "echo TWO\n")
    done = steps.commit()
    assert names(done["reused"]) == ["one.sh"]
    assert steps.printed("e2") == "one\nTWO"  # read as text: line ends are newlines
