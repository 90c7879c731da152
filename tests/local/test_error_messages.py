"""What a user gets wrong, and what a disk does: a code, one sentence, a hint, the right status."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.local.processes import TrackedProject

NOISE = "".join(random.Random(5).choices("0123456789abcdefghijklmnop", k=400_000))


def recorded(folder: Path, graph_in_turn: dict[str, str]) -> TrackedProject:
    clew = TrackedProject(folder, **graph_in_turn)
    clew.write("data", NOISE)
    clew.write("small", "small\n")
    clew("exec", "--", "sh", "-c", "cat data small > out")
    return clew


@pytest.fixture
def clew(tmp_path: Path, graph_in_turn: dict[str, str]) -> Iterator[TrackedProject]:
    clew = recorded(tmp_path, graph_in_turn)
    yield clew
    clew.stop()


@pytest.fixture(scope="module")
def unchanged(
    tmp_path_factory: pytest.TempPathFactory, graph_in_turn: dict[str, str]
) -> Iterator[TrackedProject]:
    """For tests that only ask, and what they ask is refused."""
    clew = recorded(tmp_path_factory.mktemp("unchanged"), graph_in_turn)
    yield clew
    clew.stop()


@pytest.mark.parametrize(
    "words",
    [
        ["show", "e99"],
        ["show", "nobody"],
        ["show", "e1.p99"],
        ["cat", "e99:data"],
        ["cat", "e1:nothing"],
        ["cat", "e1:data@99"],
        ["cat", "blake3:0000000000000000"],
        ["restore", "e1:nothing"],
        ["trace", "e99"],
        ["trace", "nothing"],
        ["rm", "e99", "--yes"],
        ["note", "e99", "a=b"],
        ["export", "e99", "-o", "file"],
    ],
)
def test_unknown_targets(unchanged: TrackedProject, words: list[str]) -> None:
    code, message, hint = unchanged.error(*words, status=5)
    assert code in ("not-found", "no-content")
    assert message
    assert hint
    assert "\n" not in message


def test_no_project(tmp_path: Path, clew: TrackedProject) -> None:
    nowhere = Path("/") if not (Path("/") / ".clew").exists() else tmp_path
    for words in (["list"], ["show", "e1"], ["gc", "--yes"], ["fsck"], ["rm", "e1", "--yes"]):
        code, _, hint = clew.error(*words, status=5, cwd=nowhere)
        assert (code, hint) == ("no-project", "clew init")
    clew.environment["CLEW_PROJECT"] = str(tmp_path / "not-there")
    code, message, hint = clew.error("list", status=5)
    assert (code, "not-there" in message) == ("no-project", True)


@pytest.mark.parametrize(
    ("word", "status", "code"),
    [
        ("no-such-program-anywhere", 127, "no-such-command"),
        ("./not/there", 127, "no-such-command"),
        ("./small", 126, "not-executable"),
        ("./folder", 126, "not-executable"),
        ("./lost-interpreter", 127, "no-such-command"),
    ],
)
def test_what_cannot_be_run(unchanged: TrackedProject, word: str, status: int, code: str) -> None:
    (unchanged.folder / "folder").mkdir(exist_ok=True)
    unchanged.write("lost-interpreter", "#!/not/there\n").chmod(0o755)
    ran = unchanged("exec", "--json", "--", word, status=status)
    told = json.loads(ran.stderr.splitlines()[-1])["error"]
    assert told["code"] == code
    if code == "no-such-command":
        assert ("PATH" in told["hint"]) == ("/" not in word)
    assert word in told["message"]
    assert told["hint"]
    assert unchanged.states() == {"e1": "done"}
    assert unchanged.leftovers() == []


def test_the_command_s_own_126_and_127_are_its_own(clew: TrackedProject) -> None:
    for status in (125, 126, 127):
        ran = clew("exec", "--", "sh", "-c", f"exit {status}", status=status)
        assert f"failed with status {status}" in ran.stderr


def flip(path: Path, at: int) -> None:
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)


def packs(clew: TrackedProject) -> list[Path]:
    found = (clew.folder / ".clew" / "store" / "packs").glob("*.pack")
    return sorted(found, key=lambda path: path.stat().st_size)


def test_a_byte_of_a_pack_is_flipped(clew: TrackedProject) -> None:
    """Wherever it is: fsck names it, and nobody is ever given wrong bytes."""
    largest = packs(clew)[-1]
    good = largest.read_bytes()
    hit = False
    for part in range(1, 10):
        flip(largest, len(good) * part // 10)
        found = clew.json("fsck", status=3)
        assert largest.name in {problem["where"] for problem in found["problems"]}
        process = clew.start("cat", "e1:data")
        out, said = process.communicate()
        if process.returncode == 0:
            assert out == NOISE
        else:
            hit = True
            assert process.returncode == 3, said
            assert not NOISE.startswith(out) or out != NOISE
            assert said.startswith("error: ")
            code, _, hint = clew.error("restore", "e1:data", "--to", "back", status=3)
            assert code == "damaged"
            assert hint
            assert not (clew.folder / "back").exists()
        largest.write_bytes(good)
    assert hit
    assert clew.json("fsck")["ok"]
    assert clew("cat", "e1:data").stdout == NOISE


def test_a_pack_is_cut_or_gone(clew: TrackedProject) -> None:
    largest = packs(clew)[-1]
    good = largest.read_bytes()
    largest.chmod(0o600)
    largest.write_bytes(good[: len(good) // 2])
    assert largest.name in str(clew.json("fsck", status=3)["problems"])
    assert clew.start("cat", "e1:data").wait() in (0, 3)
    largest.unlink()
    assert largest.name in str(clew.json("fsck", status=3)["problems"])
    process = clew.start("cat", "e1:data")
    _, said = process.communicate()
    assert process.returncode == 3, said
    assert "hint: " in said
    ran = clew("exec", "--", "cat", "small")  # new work goes on
    assert "done" in ran.stderr


def test_a_damaged_index_is_rebuilt_or_reported(clew: TrackedProject) -> None:
    index = clew.folder / ".clew" / "store" / "index.db"
    for beside in index.parent.glob("index.db-*"):
        beside.unlink()
    index.write_bytes(b"no database at all" * 1000)
    process = clew.start("fsck")
    out, said = process.communicate()
    assert process.returncode in (0, 3), said
    assert "Traceback" not in said
    process = clew.start("cat", "e1:data")
    out, said = process.communicate()
    assert process.returncode in (0, 3), said
    assert out == NOISE or said.startswith("error: ")


def test_there_and_back_makes_no_circle(clew: TrackedProject) -> None:
    """A file that goes from A to B to A has three versions, each made of the one before."""
    clew.write("state", "A")
    for content in ("B", "A", "B", "A"):
        clew("exec", "--", "sh", "-c", f"read was < state; printf {content} > state")
    found = clew.json("trace", "state")
    following: dict[str, set[str]] = {}
    for edge in found["edges"]:
        following.setdefault(edge["from"], set()).add(edge["to"])
    done: set[str] = set()
    path: set[str] = set()

    def walk(node: str) -> None:
        assert node not in path, f"{node} comes from itself"
        if node in done:
            return
        path.add(node)
        for other in following.get(node, ()):
            walk(other)
        path.remove(node)
        done.add(node)

    for node in following:
        walk(node)
    states = [node for node in found["nodes"] if node["label"].endswith("state")]
    assert len([node for node in states if node["kind"] == "file"]) >= 5
