"""Files that the loader and the C library open by themselves: recorded without a stop for each."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.driver import Project, Recording
from tests.local.programs.compiling import compiled

ABSENT = [f"missing{number}.so" for number in range(200)]
WORDS = [f"./{name}" for name in ABSENT]


def _absent(ran: Recording) -> dict[str, int]:
    """Which process, by its number, looked in vain for what, of all in the project's folder."""
    folder = os.fsencode(f"{ran.project.folder}/")
    return {
        os.path.basename(os.fsdecode(look.path)): look.process
        for look in ran.looks()
        if look.kind == "absent" and look.path and folder in look.path
    }


@pytest.mark.parametrize("how", ["alone", "beside", "child"])
def test_all_that_is_loaded_and_all_that_is_missing(
    project: Project, built: Path, how: str
) -> None:
    (project / "real.c").write_text("int answer(void) { return 42; }\n")
    make = ["cc", "-shared", "-fPIC", "-o", "real.so", "real.c"]
    subprocess.run(make, cwd=project.folder, check=True)
    (project / "linked.so").symlink_to("real.so")
    ran = project.exec(compiled("loads", built), how, "./first.so", "./linked.so", *WORDS)
    assert ran.status == 0
    assert ran.readers("real.so") == {"loads"}
    assert "link" in {kind for _, kind, _ in ran.looked("linked.so")}
    later = 2 if how == "child" else 1
    assert _absent(ran) == {"first.so": 1} | dict.fromkeys(ABSENT, later)


@pytest.mark.parametrize("how", ["alone", "child", "catalogs"])
def test_it_is_not_stopped_for_each(project: Project, built: Path, how: str) -> None:
    ran = project.exec(compiled("loads", built), how, "./first.so", *WORDS)
    assert int(ran.out) < len(ABSENT)
    assert _absent(ran).keys() == {"first.so", *ABSENT}
