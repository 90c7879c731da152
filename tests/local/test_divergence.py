"""Planted causes: the process that diverged first is named, with what made it, and confirmed."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.driver import Project

PYTHON = f"{sys.executable} -P"  # a script called random.py shall not be found as a module


def repeated(project: Project, reference: str) -> dict[str, Any]:
    ran = project.command("repeat", reference, "--json")
    assert ran.returncode == 3, (ran.stdout, ran.stderr)
    document: dict[str, Any] = json.loads(ran.stdout)
    assert document["verdict"] == "different"
    divergence: dict[str, Any] = document["divergence"]
    return divergence


def differing(project: Project, a: str, b: str) -> dict[str, Any]:
    ran = project.command("diff", a, b, "--confirm", "--json")
    assert ran.returncode == 3, (ran.stdout, ran.stderr)
    divergence: dict[str, Any] = json.loads(ran.stdout)["divergence"]
    return divergence


def told(divergence: dict[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """The last word of the command that is named, and its causes."""
    causes = [(cause["cause"], cause["confidence"]) for cause in divergence["causes"]]
    return divergence["command"][-1].removeprefix("steps/"), causes


def steps(project: Project, **programs: str) -> str:
    """Each program as a script of its own; the line of shell that runs one after the other."""
    folder = project / "steps"
    folder.mkdir()
    for name, text in programs.items():
        (folder / f"{name}.py").write_text(text)
    return "; ".join(f"{PYTHON} steps/{name}.py" for name in programs)


def test_an_unseeded_shuffle_among_misleading_names(project: Project) -> None:
    line = steps(
        project,
        random="import random; random.seed(7); open('clock.log', 'w').write(str(random.random()))",
        stable="""
import random
rows = list(range(100))
random.shuffle(rows)
open("urandom", "w").write(open("clock.log").read() + str(rows))
""",
        network="open('result', 'w').write(open('urandom').read()[::-1])",
    )
    found = repeated(project, project.sh(line).id)
    assert told(found) == ("stable.py", [("random", "confirmed")])
    assert found["process"].startswith("e2.")


def test_a_seeded_program_called_random_is_innocent(project: Project) -> None:
    line = steps(project, random="import random; random.seed(7); open('x', 'w').write('same')")
    ran = project.command("repeat", project.sh(line).id, "--json")
    assert (ran.returncode, json.loads(ran.stdout)["divergence"]) == (0, None)


def test_unseeded_initial_weights(project: Project) -> None:
    pytest.importorskip("numpy")
    line = steps(
        project,
        data="open('data', 'w').write('1 2 3')",
        train="""
import numpy
weights = numpy.random.default_rng().normal(size=8)
numpy.savetxt("weights", weights * numpy.loadtxt("data").sum())
""",
        report="open('report', 'w').write(open('weights').read().upper())",
    )
    assert told(repeated(project, project.sh(line).id)) == ("train.py", [("random", "confirmed")])


def test_the_order_of_a_set(project: Project) -> None:
    """Hash seeds are randomness, too."""
    line = steps(project, words="open('x', 'w').write(str({str(n) for n in range(100)}))")
    environment = {n: v for n, v in project.environment.items() if n != "PYTHONHASHSEED"}
    ran = project.sh(line, env=environment)
    assert told(repeated(project, ran.id)) == ("words.py", [("random", "confirmed")])


def test_a_time_stamp(project: Project) -> None:
    line = steps(
        project,
        first="open('x', 'w').write('same')",
        stamp="import time; open('stamp', 'w').write(open('x').read() + str(time.time()))",
    )
    assert told(repeated(project, project.sh(line).id)) == ("stamp.py", [("clock", "confirmed")])


def test_a_random_device(project: Project) -> None:
    ran = project.sh("head -c 16 /dev/urandom > key; cat key key > twice")
    found = repeated(project, ran.id)
    assert found["command"][0] == "head"
    assert told(found)[1] == [("random", "confirmed")]
    assert found["causes"][0]["detail"] == "it read /dev/urandom"


def test_both_the_clock_and_chance(project: Project) -> None:
    line = steps(
        project,
        both="""
import random, time
open("x", "w").write(f"{time.time()} {random.random()}")
""",
    )
    found = repeated(project, project.sh(line).id)
    assert told(found) == ("both.py", [("random", "confirmed"), ("clock", "confirmed")])


def test_the_program_in_a_pipe_that_made_the_difference(project: Project) -> None:
    ran = project.sh("date +%N | tr a-z A-Z > upper; wc -c < upper > size; cat size upper > all")
    found = repeated(project, ran.id)
    assert found["command"] == ["date", "+%N"]
    assert told(found)[1] == [("clock", "confirmed")]


def test_the_second_program_of_a_pipe(project: Project) -> None:
    (project / "rows").write_text("".join(f"{n}\n" for n in range(100)))
    found = repeated(project, project.sh("cat rows | sort -R > mixed").id)
    assert found["command"][:2] == ["sort", "-R"]
    assert told(found)[1] == [("random", "confirmed")]


def test_an_argument_that_comes_from_another_process(project: Project) -> None:
    (project / "use.py").write_text("import sys; open('x', 'w').write(sys.argv[1])")
    ran = project.sh(f"now=$(date +%s%N); {PYTHON} use.py $now")
    found = repeated(project, ran.id)
    assert found["command"] == ["date", "+%s%N"]
    assert told(found)[1] == [("clock", "confirmed")]


def test_a_python_driver(project: Project) -> None:
    steps(
        project,
        prepare="open('x', 'w').write('same')",
        name="import uuid; print(uuid.uuid4())",
        drive="""
import subprocess, sys
subprocess.run([sys.executable, "steps/prepare.py"], check=True)
name = subprocess.run([sys.executable, "steps/name.py"], check=True, capture_output=True).stdout
open("result", "wb").write(name + open("x", "rb").read())
""",
    )
    ran = project.exec(sys.executable, "steps/drive.py")
    assert told(repeated(project, ran.id)) == ("name.py", [("random", "confirmed")])


def test_make(project: Project) -> None:
    steps(
        project,
        first="open('first', 'w').write('same')",
        second="import os; open('second', 'wb').write(os.urandom(8) + open('first', 'rb').read())",
    )
    (project / "Makefile").write_text(
        f"second: first\n\t{PYTHON} steps/second.py\nfirst:\n\t{PYTHON} steps/first.py\n"
    )
    ran = project.exec("make")
    assert told(repeated(project, ran.id)) == ("second.py", [("random", "confirmed")])


def test_what_cannot_be_pinned_is_never_confirmed(project: Project) -> None:
    """A process id depends on neither the clock nor chance."""
    line = steps(project, pid="import os; open('x', 'w').write(str(os.getpid()))")
    found = repeated(project, project.sh(f"true; {line}").id)
    assert told(found) == ("pid.py", [("random", "candidate"), ("clock", "candidate")])


def test_experiments_leave_nothing_behind(project: Project) -> None:
    ran = project.sh("date +%N > x")
    clew = project / ".clew"
    assert repeated(project, ran.id)["causes"][0]["confidence"] == "confirmed"
    assert len(json.loads(project.command("list", "--json").stdout)) == 2
    assert list((clew / "spool").iterdir()) == []
    assert len(list((clew / "cache" / "roots").iterdir())) == 1  # of the repetition itself
    assert project.command("fsck").returncode == 0


def test_only_the_output_tells(project: Project) -> None:
    line = steps(
        project,
        quiet="open('x', 'w').write('same')",
        hello="print('hello')",
        dice="import random; print(random.random())",
        bye="print('bye')",
    )
    found = repeated(project, project.sh(line).id)
    assert told(found) == ("dice.py", [("random", "confirmed")])


def test_a_changed_data_file(project: Project) -> None:
    line = steps(
        project,
        clean="open('clean', 'w').write(open('raw').read().strip())",
        train="open('model', 'w').write(open('clean').read() * 2)",
    )
    (project / "raw").write_text("1\n")
    first = project.sh(line)
    (project / "raw").write_text("2\n")
    found = differing(project, first.id, project.sh(line).id)
    assert told(found) == ("clean.py", [("input", "confirmed")])
    assert found["causes"][0]["detail"] == f"{project / 'raw'} differs"


def test_of_two_changed_files_the_one_that_matters(project: Project) -> None:
    line = steps(
        project,
        train="""
note = open("note").read()
open("model", "w").write(open("rate").read())
""",
    )
    for name in ("note", "rate"):
        (project / name).write_text("1")
    first = project.sh(line)
    for name in ("note", "rate"):
        (project / name).write_text("2")
    found = differing(project, first.id, project.sh(line).id)
    assert told(found) == ("train.py", [("input", "confirmed")])
    assert found["causes"][0]["detail"] == f"{project / 'rate'} differs"


def test_a_changed_library(project: Project) -> None:
    site = project / "lib" / "python3" / "site-packages"
    site.mkdir(parents=True)
    line = steps(
        project,
        prepare="open('x', 'w').write('3')",
        apply="import ruler; open('y', 'w').write(str(ruler.measure(int(open('x').read()))))",
    )
    environment = {**project.environment, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
    ids = []
    for version in ("1.5", "2.5"):
        _install(site, version)
        ids.append(project.sh(line, env=environment).id)
    found = differing(project, *ids)
    assert told(found) == ("apply.py", [("library", "confirmed")])
    assert found["causes"][0]["detail"] == "ruler 1.5 → 2.5"


def _install(site: Path, version: str) -> None:
    """The package `ruler`, as pip leaves one."""
    for folder in site.glob("ruler-*.dist-info"):
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
    about = site / f"ruler-{version}.dist-info"
    about.mkdir()
    (site / "ruler.py").write_text(f"def measure(x):\n    return x * {version}\n")
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ruler\nVersion: {version}\n")
    (about / "INSTALLER").write_text("pip\n")
    names = ("METADATA", "INSTALLER", "RECORD")
    files = "".join(f"{about.name}/{name},,\n" for name in names)
    (about / "RECORD").write_text(f"ruler.py,,\n{files}")


def test_a_variable(project: Project) -> None:
    line = steps(project, use="import os; open('x', 'w').write(os.environ['RATE'])")
    ids = [
        project.sh(line, env={**project.environment, "RATE": rate, "OTHER": rate}).id
        for rate in ("1", "2")
    ]
    found = differing(project, *ids)
    assert told(found) == ("use.py", [("variable", "confirmed")])
    assert found["causes"][0]["detail"] == "RATE: 1 → 2"


def test_an_argument(project: Project) -> None:
    (project / "use.py").write_text("import sys; open('x', 'w').write(sys.argv[1])")
    ids = [project.exec(sys.executable, "use.py", rate).id for rate in ("1", "2")]
    found = differing(project, *ids)
    assert told(found) == ("2", [("argument", "confirmed")])


def test_a_new_file_in_a_listed_folder(project: Project) -> None:
    line = steps(project, count="import os; open('n', 'w').write(str(len(os.listdir('parts'))))")
    (project / "parts").mkdir()
    (project / "parts" / "a").write_text("a")
    first = project.sh(line)
    (project / "parts" / "b").write_text("b")
    found = differing(project, first.id, project.sh(line).id)
    assert told(found) == ("count.py", [("listing", "confirmed")])


def test_a_racing_pair(project: Project) -> None:
    """Whoever comes second sees what the first has written; nobody decides who that is."""
    (project / "add.py").write_text(
        """
import os, sys
with open("log", "a") as log:
    log.write(sys.argv[1] + "\\n")
"""
    )
    line = f"rm -f log; {PYTHON} add.py a & {PYTHON} add.py b & wait; cp log sorted"
    first = project.sh(line)
    for _ in range(40):
        second = project.sh(line)
        if second.cat("log") != first.cat("log"):
            break
    else:
        pytest.skip("the same one always came first")
    found = differing(project, first.id, second.id)
    assert told(found)[0] in ("a", "b")
    assert ("order", "confirmed") in told(found)[1]
