"""Whether recorded work can be reused instead of run again, and the reuse itself.

Contains the checks of recorded inputs against the present, the analysis of process subtrees and
the incremental repeat. When in doubt, the answer is to run. Imported by `pipelines` and `api`.
"""
