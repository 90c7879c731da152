"""Starting a command under the tracer: its host or sandbox, environment, pins and signals.

Also answers the tracer when it asks whether a program must run at all. Never reads a trace and
never writes to the graph. Imported by `run` and the packages above.
"""
