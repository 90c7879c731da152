"""Sessions: a recorded command that stays alive, and forks a child for each task or divides its
work into steps.

Splits the one trace of a session into one execution per task or step. Knows nothing about
pipelines or notebooks; `pipelines` imports it for its warm workers, `notebooks` for its kernels.
"""
