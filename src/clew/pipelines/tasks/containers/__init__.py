"""Container components: their command line, the runtime's client, and its traced wrapper.

Never decides when a task starts. Imported by `pipelines.tasks`.
"""
