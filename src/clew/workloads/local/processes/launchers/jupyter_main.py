"""Run Jupyter, without the modules of the project.

    jupyter_main.py MODULE JUPYTER_ARGUMENTS…

`python -m` would import from the working directory first: a `random.py` of the project would keep
Jupyter from starting. Kernels find the modules beside their notebooks all the same.
"""

import runpy
import sys

if __name__ == "__main__":
    del sys.path[0]
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
