"""Random pipelines, randomly edited: an incremental run comes out as a full one, and says as much.

Programs are shell scripts that read, write, append, rename, delete, link, list, ask whether files
are there and which is newer, use pipes, subshells and background jobs. After an edit of scripts,
data or the driver the whole is run twice from the same record: incrementally, and in full.
"""

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.local.processes import TrackedProject

from clew.api.local.repeat import run_plan, store_file
from clew.prov.queries.execution_record import ExecutionRecord, load_record
from clew.replay.repeat import repeat_plan
from clew.replay.repeat.secret_values import SecretValues
from clew.replay.sandbox.initial_files import Entry, make_listing_reader
from clew.store import Store

NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
"""An example takes seconds: as it was found is soon enough."""

FILES = ("a", "b", "x.dat", "d/p", "d/q", "e/r")
FOLDERS = ("d", "e", "g")

files = st.sampled_from(FILES)
folders = st.sampled_from(FOLDERS)
numbers = st.integers(0, 4)

LINES = (
    "cat {0} {1} > {2} 2>/dev/null",
    "echo w{3} > {0}",
    "echo k{3} >> {0}",
    "if [ -e {0} ]; then echo yes {3}; else echo no > {1}; fi",
    "echo *",
    "echo d/* > {0}",
    "mv {0} {1} 2>/dev/null",
    "rm -f {0}",
    "mkdir {4} 2>/dev/null",
    "rmdir {4} 2>/dev/null",
    "cp -p {0} {1} 2>/dev/null",
    "[ {0} -nt {1} ] && echo newer > {2}",
    "cat {0} 2>/dev/null | sort | head -n 2 > {1}",
    "{{ cat {0} > {1}; }} 2>/dev/null & wait",
    "sort < {0} > {1} 2>/dev/null",
    "x=$(cat {0} 2>/dev/null); echo $x > {1}",
    "touch {0} 2>/dev/null",
    "ln -s {0} {1} 2>/dev/null",
    "chmod 6{3}4 {0} 2>/dev/null",
    "find . -name '[a-e]' | sort",
    "echo err{3} >&2",
    "cd {4} 2>/dev/null && echo in || echo out",
)
WAYS = (
    "{0}",
    "{0}",
    "{0} > {1} 2>/dev/null",
    "{0} >> {1} 2>/dev/null",
    "{0} | sort",
    "{0} & wait",
    "( {0} )",
)

lines = st.builds(
    lambda line, *values: line.format(*values),
    st.sampled_from(LINES), files, files, files, numbers, folders,
)  # fmt: skip
scripts = st.lists(lines, min_size=1, max_size=3).map(lambda many: "\n".join(many) + "\n")
texts = st.lists(numbers, max_size=3).map(lambda many: "".join(f"line {n}\n" for n in many))


@dataclass(frozen=True)
class Pipeline:
    """A driver that starts steps, their scripts, and the data there is."""

    steps: list[str]
    starts: list[tuple[str, str, int]]
    data: dict[str, str]

    def files(self) -> dict[str, str]:
        calls = [
            way.format(f"sh s{number}.sh {word}", name)
            for number, (way, name, word) in enumerate(self.starts[: len(self.steps)])
        ]
        scripts = {f"s{number}.sh": text for number, text in enumerate(self.steps)}
        # all programs that an edit may bring in are recorded: a sandbox has no others
        known = "cat sort head mv rm mkdir rmdir cp touch ln chmod find"
        first = f"for tool in {known}; do $tool --version; done > /dev/null\n"
        return {**self.data, **scripts, "run.sh": first + "\n".join(calls) + "\nexit 0\n"}


pipelines = st.builds(
    Pipeline,
    st.lists(scripts, min_size=2, max_size=4),
    st.lists(st.tuples(st.sampled_from(WAYS), files, numbers), min_size=4, max_size=4),
    st.dictionaries(files, texts, min_size=2, max_size=4),
)


@dataclass(frozen=True)
class Edit:
    """New scripts, words and data; None: the data is taken away."""

    steps: dict[int, str] = field(default_factory=dict)
    starts: dict[int, tuple[str, str, int]] = field(default_factory=dict)
    data: dict[str, str | None] = field(default_factory=dict)

    def of(self, before: Pipeline) -> dict[str, str | None]:
        steps = [self.steps.get(n, text) for n, text in enumerate(before.steps)]
        starts = [self.starts.get(n, how) for n, how in enumerate(before.starts)]
        now = Pipeline(steps, starts, before.data).files()
        changed = {n: text for n, text in now.items() if before.files().get(n) != text}
        return {**changed, **self.data}


edits = st.builds(
    Edit,
    st.dictionaries(st.integers(0, 3), scripts, max_size=1),
    st.dictionaries(
        st.integers(0, 3), st.tuples(st.sampled_from(WAYS), files, numbers), max_size=1
    ),
    st.dictionaries(st.sampled_from(FILES[:3]), st.none() | texts, max_size=1),
)


def outcome(record: ExecutionRecord) -> dict[str, Any]:
    """What came of it, and all that was told: without times, and without its own name."""

    def name(locator: str) -> str:
        return locator.replace(record.execution.uid, "")

    def paths(kind: str) -> set[str]:
        return {name(record.versions[edge.version].locator) for edge in getattr(record, kind)}

    left = {name(locator): (v.digest, v.mode) for locator, v in record.left.items()}
    return {
        "status": record.itself.status,
        "left": {at: content for at, content in left.items() if not at.startswith("stream:")},
        "printed": {at: content[0] for at, content in left.items() if at.startswith("stream:")},
        "commands": sorted(" ".join(process.command) for process in record.processes),
        "used": paths("used"),
        "generated": paths("generated"),
        "invalidated": paths("invalidated"),
    }


def both(pipeline: Pipeline, edit: Edit) -> tuple[dict[str, Any], dict[str, Any], int]:
    """How the edited pipeline comes out incrementally and in full; how much was reused."""
    with tempfile.TemporaryDirectory() as folder:
        clew = TrackedProject(Path(folder))
        for name, text in pipeline.files().items():
            clew.write(name, text)
        clew("exec", "--", "sh", "run.sh")
        found = []
        reused = 0
        for incremental in (True, False):
            with clew.opened() as project:
                record = load_record(project.graph, "e1")
                with Store(project.directory.store) as store:
                    plan = repeat_plan.make_plan(
                        record,
                        read_listing=make_listing_reader(store),
                        values=SecretValues(),
                        network=False,
                    )
                    entries: dict[bytes, Entry | None] = {}
                    for name, new in edit.of(pipeline).items():
                        place = os.fsencode(clew.folder / name)
                        text_of = None if new is None else clew.write(f"edited/{name}", new)
                        entries[place] = None if text_of is None else store_file(store, text_of)
                repeated = run_plan(
                    project, record, plan.with_files(entries), kind="modification",
                    network=False, incremental=incremental, quiet=True,
                )  # fmt: skip
                reused += len(repeated.reused)
                found.append(outcome(load_record(project.graph, repeated.execution.uid)))
        return found[0], found[1], reused


def check(pipeline: Pipeline, edit: Edit) -> None:
    incremental, full, _ = both(pipeline, edit)
    for fact, value in full.items():
        assert incremental[fact] == value, fact


@given(pipelines, edits)
@settings(max_examples=settings().max_examples // 3, phases=NO_SHRINKING)
def test_an_incremental_run_comes_out_as_a_full_one(pipeline: Pipeline, edit: Edit) -> None:
    check(pipeline, edit)


def test_much_is_reused() -> None:
    """The property above would hold, too, if nothing ever were."""
    steps = [f"cat a d/p > o{n}\necho {n}\n[ -e x.dat ] || echo none\n" for n in range(4)]
    pipeline = Pipeline(steps, [("{0}", "a", 0)] * 4, {"a": "1\n", "d/p": "2\n"})
    incremental, full, reused = both(pipeline, Edit(steps={3: "echo other\n"}))
    assert incremental == full
    assert reused >= 3
