"""Notebooks, cell by cell: a kernel whose cells are recorded, and the incremental repeat.

- `kernel_spec`: makes the kernel known to Jupyter
- `kernel_process`: runs a kernel under the tracer and answers its questions
- `messages`: what kernel and recorder tell each other
- `cell_events`: the record of one cell
- `cell_memo`: finds an earlier run of a cell that would have the same result now
- `notebook_repeat`: runs the cells of a notebook file in a new kernel
- `clew_kernel`: the part that runs in the notebook's own Python

Knows nothing about pipelines, servers and commands. `api` and `cli` import it; `clew_kernel`
imports nothing of Clew.
"""
