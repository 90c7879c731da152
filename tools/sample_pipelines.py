"""Compiles the pipelines of `examples/` to the sample pipelines that the server ships.

    python -m tools.sample_pipelines [DIRECTORY]

The compiled files are in Git: the server must not need the kfp SDK, nor must the build. A test
compiles them again and compares.
"""

import runpy
import sys
import warnings
from pathlib import Path

from kfp.compiler import Compiler

_ROOT = Path(__file__).parents[1]
SAMPLES = _ROOT / "src/clew/server/samples"
_FUNCTIONS = {
    "data-passing": "data_passing",
    "taxi": "taxi_tips",
    "mnist": "mnist",
    "cifar10": "cifar10",
}


def compile_samples(directory: Path) -> None:
    """Compile every example to `NAME.yaml`, by the name of the pipeline."""
    warnings.simplefilter("ignore")
    for example, function in _FUNCTIONS.items():
        folder = _ROOT / "examples" / example
        sys.path.insert(0, str(folder))
        pipeline = runpy.run_path(str(folder / "pipeline.py"))[function]
        Compiler().compile(pipeline, str(directory / f"{pipeline.name}.yaml"))
        sys.path.remove(str(folder))
        sys.modules.pop("tasks", None)  # the next example has another module of this name


if __name__ == "__main__":
    compile_samples(Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLES)
