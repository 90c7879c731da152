"""Decide whether recorded work can be reused instead of run again, and reuse it.

Contains the checks of recorded inputs against the present files, the analysis of process subtrees
and the incremental repeat. When in doubt, the answer is to run. Imported by `pipelines` and `api`.
"""
