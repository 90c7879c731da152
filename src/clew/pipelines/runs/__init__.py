"""Pipeline runs: the loop that carries out what the engine decides, and the record of a run.

Imported by `api`. Everything about the queue of a server is in `server`.
"""
