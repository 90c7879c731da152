"""A cached build is complete or absent, also with several builders or a killed one."""

import signal
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2]

# Writes half, says so, waits for a word, writes the rest.
MAKE = """
import sys
from pathlib import Path
from tools.cluster.binaries import build_once

def make(folder):
    (folder / "half").write_text(sys.argv[2])
    print("half", flush=True)
    sys.stdin.readline()
    (folder / "whole").write_text(sys.argv[2])

build_once(Path(sys.argv[1]), make)
print("there", flush=True)
"""


def maker(place: Path, who: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", MAKE, str(place), who],
        cwd=SOURCE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_second_builder_waits_and_builds_nothing(tmp_path: Path) -> None:
    place = tmp_path / "programs"
    first = maker(place, "first")
    assert line(first) == "half"
    second = maker(place, "second")
    assert second.stderr is not None
    assert "waiting" in second.stderr.readline()
    assert not place.exists()
    first.communicate("go\n")
    assert second.communicate("go\n")[0] == "there\n"
    assert (place / "whole").read_text() == "first"


def test_an_interrupted_build_is_repeated(tmp_path: Path) -> None:
    place = tmp_path / "programs"
    killed = maker(place, "killed")
    assert line(killed) == "half"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert not place.exists()
    assert maker(place, "next").communicate("go\n")[0] == "half\nthere\n"
    assert {file.read_text() for file in place.iterdir()} == {"next"}


def test_an_existing_build_is_not_repeated(tmp_path: Path) -> None:
    place = tmp_path / "programs"
    assert maker(place, "first").communicate("go\n")[0] == "half\nthere\n"
    assert maker(place, "second").communicate("go\n")[0] == "there\n"
    assert (place / "whole").read_text() == "first"
