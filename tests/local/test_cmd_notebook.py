"""`clew notebook repeat`: cells run, or their outputs and variables come from the store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tests.driver import Project
from tests.local.recorded_bytes import read_recorded_bytes

SEEDED = "import random, helper\nrandom.seed(helper.SEED)"
CELLS = [
    f"{SEEDED}\ndata = [int(line) for line in open('data.txt')]\ndata",
    "from pathlib import Path\nPath('sum.txt').write_text(str(sum(data)))\nalias = data",
    "scale = 2",
    "print(scale * int(Path('sum.txt').read_text()), random.randrange(1000))",
    "alias.append(0)\nprint(data)",
]

CONNECTION = """
class Connection:
    def __reduce__(self):
        raise ValueError('open with ' + os.environ['DB_PASSWORD'])
connection = Connection()
"""


def write_notebook(project: Project, cells: list[str], name: str = "nb.ipynb") -> None:
    notebook = new_notebook(cells=[new_markdown_cell("text"), *map(new_code_cell, cells)])
    nbformat.write(notebook, project / name)


def repeat(project: Project, *words: str, status: int = 0, name: str = "nb.ipynb") -> Any:
    ran = project.command("notebook", "repeat", name, "--json", *words)
    assert ran.returncode == status, ran.stderr.decode()
    return json.loads(ran.stdout)


def states(document: Any) -> list[str]:
    return [cell["state"] for cell in document["cells"]]


def outputs(file: Path) -> list[Any]:
    cells = nbformat.read(file, as_version=4).cells
    return [cell.outputs for cell in cells if cell.cell_type == "code"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project in which the notebook ran once."""
    project = Project(tmp_path_factory.mktemp("notebook"), PYTHONDONTWRITEBYTECODE="1")
    (project / "data.txt").write_text("1\n2\n")
    (project / "helper.py").write_text("SEED = 1\n")
    write_notebook(project, CELLS)
    first = repeat(project, "-o", "first.ipynb")
    assert states(first) == ["ran"] * 5
    assert [cell["index"] for cell in first["cells"]] == [1, 2, 3, 4, 5]
    yield project


def test_an_unchanged_notebook_is_reused(project: Project) -> None:
    (project / "sum.txt").unlink()
    write_notebook(project, [f"{code}  # a comment" for code in CELLS])
    document = repeat(project, "--incremental", "-o", "second.ipynb")
    assert states(document) == ["reused"] * 5, document
    assert (project / "sum.txt").read_text() == "3"
    assert outputs(project / "second.ipynb") == outputs(project / "first.ipynb")


def test_an_edited_cell_and_what_depends_on_it_run(project: Project) -> None:
    write_notebook(project, [*CELLS[:2], "scale = 3", *CELLS[3:]])
    document = repeat(project, "--incremental", "-o", "edited.ipynb")
    assert states(document) == ["reused", "reused", "ran", "ran", "reused"], document
    assert [cell["why"] for cell in document["cells"]][2] == "its code is new"
    assert "its input scale changed since e" in document["cells"][3]["why"]
    repeat(project, "-o", "full.ipynb")
    assert outputs(project / "edited.ipynb") == outputs(project / "full.ipynb")


def test_a_changed_file_makes_its_readers_run(project: Project) -> None:
    write_notebook(project, CELLS)
    (project / "data.txt").write_text("1\n5\n")
    document = repeat(project, "--incremental", "-o", "changed.ipynb")
    assert states(document) == ["ran", "ran", "reused", "ran", "ran"], document
    assert "data.txt changed since e" in document["cells"][0]["why"]
    assert "[1, 5, 0]" in str(outputs(project / "changed.ipynb"))


def test_magics_await_errors_and_what_cannot_be_saved(project: Project) -> None:
    cells = [
        "import asyncio\nvalue = await asyncio.sleep(0, 'awaited')\nvalue",
        "%%bash\necho from $((1 + 1)) | tee shell.txt",
        "!cat shell.txt",
        "numbers = iter(lambda: 1, 2)\nlock = __import__('threading').Lock()",
        "next(numbers)",
        "1 / 0",
        "print('never')",
    ]
    write_notebook(project, cells, "odd.ipynb")
    first = repeat(project, "-o", "odd1.ipynb", status=1, name="odd.ipynb")
    assert states(first) == ["ran"] * 5 + ["failed"]
    assert first["verdict"] == "failed"
    assert first["error"] == "ZeroDivisionError: division by zero"
    again = repeat(project, "--incremental", "-o", "odd2.ipynb", status=1, name="odd.ipynb")
    assert states(again)[0] == "reused", again
    assert states(again)[3:] == ["ran", "ran", "failed"], again
    assert "cannot be saved: lock" in again["cells"][3]["why"]
    assert "numbers" in again["cells"][4]["why"]
    shown = outputs(project / "odd2.ipynb")
    assert shown[:5] == outputs(project / "odd1.ipynb")[:5]
    assert "from 2" in str(shown[1])


def test_parameters_and_the_lineage_of_a_cell(project: Project) -> None:
    write_notebook(
        project, ["with open('out.txt', 'w') as file: file.write(text)"], "parameters.ipynb"
    )
    document = repeat(project, "--set", "text=given", name="parameters.ipynb")
    assert states(document) == ["ran", "ran"]
    assert (project / "out.txt").read_text() == "given"
    assert "file.write(text)" in project.command("list").stdout.decode()
    traced = project.json("trace", "out.txt", "--json")
    assert "cell" in [node["label"] for node in traced["nodes"]]


def test_a_file_that_is_no_notebook(project: Project) -> None:
    (project / "odd.txt").write_text("text")
    assert b"is not a notebook" in project.command("notebook", "repeat", "odd.txt").stderr
    missing = project.command("notebook", "repeat", "missing.ipynb")
    assert missing.returncode == 5
    wrong = project.command("notebook", "repeat", "nb.ipynb", "--set", "a b")
    assert wrong.returncode == 2


def test_secrets_of_cells_are_not_stored(tmp_path: Path) -> None:
    secret = "correct-horse-battery"
    project = Project(tmp_path, PYTHONDONTWRITEBYTECODE="1", DB_PASSWORD=secret)
    cells = [
        "import os\nheld = os.environ['DB_PASSWORD'] * 2",
        "print(os.environ['DB_PASSWORD'])",
        CONNECTION,
        "len(held)",
    ]
    write_notebook(project, cells)
    repeat(project)
    again = repeat(project, "--incremental")
    assert states(again) == ["ran", "ran", "ran", "reused"], again
    assert "secret variable" in again["cells"][1]["why"]
    assert "open with ***" in again["cells"][2]["why"]
    assert not [where for where, data in read_recorded_bytes(project) if secret.encode() in data]


def test_cells_of_a_record_made_elsewhere_are_not_loaded(tmp_path: Path) -> None:
    project = Project(tmp_path, PYTHONDONTWRITEBYTECODE="1")
    write_notebook(project, ["value = 1", "value"])
    repeat(project)
    with closing(sqlite3.connect(project / ".clew" / "graph.db")) as graph, graph:
        graph.execute("UPDATE execution SET made_elsewhere = 1")
    assert states(repeat(project, "--incremental")) == ["ran"] * 2
