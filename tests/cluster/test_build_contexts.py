"""An image is built anew when something that it is built from changed, and only then."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tools.cluster.commands import ClusterError
from tools.cluster.image_archives import context_digest
from tools.cluster.images import SOURCE, project_images

CONTAINERFILE = """
FROM base AS build
COPY one.txt \\
     settings ./
COPY src src
FROM base
COPY --from=build /made /made
COPY --chmod=755 start /
"""


@pytest.fixture
def context(tmp_path: Path) -> Path:
    for name in ("one.txt", "settings", "start", "src/a.py", "src/deep/b.py", "other.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "src/link").symlink_to("a.py")
    (tmp_path / ".dockerignore").write_text("# not for builds\n**/__pycache__\nsrc/*.egg-info\n")
    (tmp_path / "Containerfile").write_text(CONTAINERFILE)
    return tmp_path


def key_of(context: Path) -> str:
    return context_digest(context / "Containerfile", context, "BASE=base")


def link_elsewhere(link: Path) -> None:
    link.unlink()
    link.symlink_to("deep/b.py")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("one.txt", lambda path: path.write_text("else")),
        ("settings", lambda path: path.write_text("else")),
        ("start", lambda path: path.chmod(0o700)),
        ("src/deep/b.py", lambda path: path.write_text("else")),
        ("src/deep/b.py", lambda path: path.rename(path.with_name("c.py"))),
        ("src/a.py", Path.unlink),
        ("src/new.py", Path.touch),
        ("src/link", link_elsewhere),
        ("Containerfile", lambda path: path.write_text(f"{CONTAINERFILE}USER 1000\n")),
    ],
)
def test_copied_files_change_the_key(
    context: Path, name: str, change: Callable[[Path], None]
) -> None:
    before = key_of(context)
    assert key_of(context) == before
    change(context / name)
    assert key_of(context) != before


def test_build_arguments_change_the_key(context: Path) -> None:
    assert context_digest(context / "Containerfile", context, "BASE=other") != key_of(context)


def test_files_outside_the_image_do_not_change_the_key(context: Path) -> None:
    before = key_of(context)
    (context / "other.txt").write_text("else")
    for name in ("src/__pycache__/a.pyc", "src/deep/__pycache__/b.pyc", "src/x.egg-info/PKG-INFO"):
        (context / name).parent.mkdir(parents=True)
        (context / name).touch()
    assert key_of(context) == before


@pytest.mark.parametrize("line", ["ADD src src", 'COPY ["src", "src"]', "COPY absent ."])
def test_unsupported_instructions_are_refused(context: Path, line: str) -> None:
    (context / "Containerfile").write_text(f"FROM base\n{line}\n")
    with pytest.raises(ClusterError):
        key_of(context)


def test_every_image_has_its_own_key() -> None:
    assert (
        len({context_digest(file, SOURCE) for file in project_images().values()})
        == len(project_images())
        > 0
    )
