"""Perform one pipeline run in this process, and record it.

`run_loop` carries out what the engine decides, `task_reuse` finds earlier results, `recorder`
writes the run to the graph. Never contains queues or requests: these are in `pipelines.runs`,
which imports this package.
"""
