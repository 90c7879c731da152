"""What the injected library stands in for answers exactly as the C library does."""

import resource
import subprocess
from pathlib import Path

import pytest
from tests.driver import Project
from tests.local.programs.compiling import compiled


def _few_descriptors() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))


@pytest.mark.parametrize("flags", [(), ("-static",)], ids=str)
def test_every_answer_is_the_same(tmp_path: Path, flags: tuple[str, ...]) -> None:
    program = compiled("wrappers", tmp_path, "-Wno-nonnull", *flags)
    alone, recorded = tmp_path / "direct_/x", tmp_path / "witness/x"
    alone.mkdir(parents=True)
    recorded.mkdir(parents=True)
    plain = subprocess.run(
        [program, alone], stdout=subprocess.PIPE, check=True, preexec_fn=_few_descriptors
    )
    ran = Project(tmp_path).exec(program, recorded, preexec_fn=_few_descriptors)
    assert ran.status == 0, ran.err
    expected = plain.stdout.replace(bytes(alone.parent), bytes(recorded.parent))
    assert ran.out.splitlines() == expected.splitlines()
    assert len(expected.splitlines()) > 1000
