"""The sandbox that a command is repeated in, and the files that it finds there.

Contains the bubblewrap command line, the whole-file cache and the initial files of an execution.
Never decides what to run. Imported by the rest of `replay`, and by `api` and `server`.
"""
