"""`clew completion`: what real shells make of unfinished command lines."""

import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest
from tests.driver import CLEW, Project

STUB = """#!/bin/sh
if [ -n "$_CLEW_COMPLETE" ] || [ "$1" = completion ]; then exec {clew} "$@"; fi
printf '[%s]' "$@"
echo ' END'
"""
"""Completes as clew does, and prints the words that it is called with."""

START = {
    "bash": ("--norc --noprofile -i", 'eval "$(clew completion bash)"'),
    "zsh": ("-f -i", 'autoload -U compinit; compinit -D -u; eval "$(clew completion zsh)"'),
    "fish": ("--no-config -i", "clew completion fish | source"),
}

LINES = {
    "clew repe": "[repeat]",
    "clew cat ba": "[cat][base]",
    "clew cat base:data/o": "[cat][base:data/out.csv]",
    "clew cat e1:data/r": "[cat][e1:data/raw file.csv]",
    "clew cat fi": "[cat][fine.sh]",
    "clew exec -- cat fi": "[exec][--][cat][fine.sh]",
    "clew exec cat fi": "[exec][cat][fine.sh]",
    "clew push dat": "[push][data/]",
    "clew restore --to=fi": "[restore][--to=fine.sh]",
    "clew export --format=ro": "[export][--format=ro-crate]",
    "clew diff ba": "[diff][base]",
}


@pytest.fixture(scope="module")
def clew(tmp_path_factory: pytest.TempPathFactory) -> Project:
    clew = Project(tmp_path_factory.mktemp("completion"))
    clew.write("data/raw file.csv", "x")
    clew.write("fine.sh", "y")
    clew.shell("cat data/* > data/out.csv", "--name", "base")
    stub = clew.folder.parent / "bin/clew"
    stub.parent.mkdir()
    stub.write_text(STUB.replace("{clew}", shlex.join(map(str, CLEW))))
    stub.chmod(0o755)
    clew.environment["PATH"] = f"{stub.parent}:{clew.environment['PATH']}"
    return clew


@pytest.fixture
def terminal(clew: Project, shell: str, tmp_path: Path) -> Iterator[pexpect.spawn]:
    program = shutil.which(shell)
    assert program, f"Debian: {shell}"
    options, start = START[shell]
    environment = {**clew.environment, "HOME": str(tmp_path), "TERM": "dumb"}
    with pexpect.spawn(
        f"{program} {options}",
        cwd=str(clew.folder),
        env=environment,
        encoding="utf-8",
        timeout=120,
        dimensions=(50, 200),
    ) as started:
        started.sendline(f'{start}; echo REA""DY')
        started.expect("READY\r?\n")
        yield started


@pytest.mark.parametrize("shell", START)
def test_ids_paths_and_files_are_completed(terminal: pexpect.spawn, shell: str) -> None:
    for line, expected in LINES.items():
        terminal.send(f"{line}\t\r")
        terminal.expect(r"(\[[^\r\n]*\]) END\r?\n")
        found = terminal.match[1]
        wanted = {expected, expected.replace("/]", "]")}  # zsh removes the slash of a directory
        assert found in wanted, f"{shell}: {line}"


def test_json(clew: Project) -> None:
    document = clew.json("completion", "fish")
    assert document["script"].rstrip("\n") == clew("completion", "fish").stdout.rstrip("\n")
    assert clew.error("completion", "tcsh", status=2)[0] == "usage"
