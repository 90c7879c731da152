"""What runs a component, told by the shape that the SDK compiles it to."""

from typing import Any

import pytest
from tests.unit.pipelines.compiled_pipelines import ARGUMENTS, COMMAND

from clew.pipelines.spec.document_part import Part
from clew.pipelines.spec.executors import parse_executor
from clew.pipelines.spec.ir import PythonFunction, Slots

PIP = "python3 -m pip install --quiet --no-warn-script-location "
SDK = PIP + "'kfp==2.17.0' '--no-deps' 'typing-extensions>=3.7.4,<5; python_version<\"3.9\"'"
PROLOGUE = """
if ! [ -x "$(command -v pip)" ]; then
    python3 -m ensurepip || python3 -m ensurepip --user || apt-get install python3-pip
fi

PIP_DISABLE_PIP_VERSION_CHECK=1 {} && "$0" "$@"
"""
VENV = """
export PIP_DISABLE_PIP_VERSION_CHECK=1
tmp=$(mktemp -d)
python3 -m venv "$tmp/venv" --system-site-packages
. "$tmp/venv/bin/activate"
"""
QUIET = ("--quiet", "--no-warn-script-location")
INDEX = "--index-url https://a/simple --extra-index-url https://b --trusted-host a "
OPTIONS = tuple(INDEX.split())


def read(**container: Any) -> Any:
    return parse_executor(Part({"container": container}, "exec"), Slots(), [])


@pytest.mark.parametrize(
    ("calls", "installs"),
    [
        (SDK, ()),
        (f"{PIP}'pandas==2' 'a; extra == \"b\"'", (("pandas==2", 'a; extra == "b"'),)),
        (f"{PIP}'pandas'  &&  {SDK}", (("pandas",),)),
        (f"{PIP}'pandas'  && {VENV} {SDK}", (("pandas",),)),
        (f"{PIP}'kfp[all]==2.1' && {PIP}'x'", (("kfp[all]==2.1",), ("x",))),
        (f"{PIP}{INDEX}'pandas' && {PIP}{INDEX}'kfp==2.17.0' '--no-deps'", ((*OPTIONS, "pandas"),)),
    ],
)  # fmt: skip
def test_packages_to_install(calls: str, installs: tuple[tuple[str, ...], ...]) -> None:
    found = read(command=["sh", "-c", PROLOGUE.format(calls), *COMMAND], args=ARGUMENTS)
    assert isinstance(found, PythonFunction)
    assert found.installs == tuple((*QUIET, *words) for words in installs)
    assert (found.source, found.function) == (COMMAND[3], "f")
