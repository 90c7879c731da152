"""Programs that run in the children, with the interpreter of Jupyter or TensorBoard.

That interpreter may not have Clew, so they import nothing of it, and are started by their paths.
"""
