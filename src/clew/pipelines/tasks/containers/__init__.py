"""Container components: the runtime's client, and the wrapper that the tracer follows.

Never decides when a task starts. Imported by `pipelines.tasks`.
"""
