"""The kernel of recorded notebooks: ipykernel, which tells the recorder of each cell.

This package runs in the Python of the notebook, which may be another one than Clew's: it imports
the standard library, IPython, ipykernel and cloudpickle, and nothing of Clew. It decides nothing:
it tells the recorder what a cell depends on and what it changed, and does what the answer says.

- `main`: the program
- `kernel`: ipykernel with these additions
- `cell_tracker`: what a cell depends on, and what it changed
- `code_names`: what the code of a cell refers to
- `namespace_state`, `object_graph`: the variables at one moment, and how they hang together
- `process_state`: random numbers, directories, modules, settings
- `fingerprints`: names of values for the record
- `serialization`, `tensors`: variables as bytes and back
- `unsavable`: the error of a value that cannot be saved
- `cell_outputs`: what a cell shows
- `module_finder`: finds modules without listing the directory of the notebook
- `session_link`: the connection to the recorder

Nothing imports this package but itself: it is started as a program.
"""
