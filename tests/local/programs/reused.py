"""A pipeline whose tasks depend on more than they declare: `python reused.py FILE.yaml`."""

import sys

from kfp import compiler, dsl
from kfp.dsl import Dataset, Input, Output


@dsl.component
def collect(count: int, data: Output[Dataset]):
    """Reads a file that nobody declared, a folder, a variable, and a module beside the pipeline."""
    import glob
    import os

    import helping

    with open("undeclared.txt") as file:
        words = [file.read()]
    words += sorted(glob.glob("folder/*"))  # noqa: PTH207
    words += [os.environ.get("CHOSEN", "none"), helping.WORD, str(count)]
    with open(data.path, "w") as file:
        file.write(" ".join(words))


@dsl.component
def measure(data: Input[Dataset]) -> int:
    with open(data.path) as file:
        return len(file.read())


@dsl.pipeline(name="reused")
def reused(count: int = 1) -> int:
    return measure(data=collect(count=count).outputs["data"]).output


if __name__ == "__main__":
    compiler.Compiler().compile(reused, sys.argv[1])
