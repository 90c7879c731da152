"""The system-call witness: turns what clew-trace saw into events.

Contains the trace format, the interpreter of trace records, the tracking of versions, and the
capture of content. Never starts a process and never writes to the graph. Imported by `run` and
above; of the other witnesses only `downloads` uses its types.
"""
