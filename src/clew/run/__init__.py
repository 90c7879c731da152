"""Doing work: what a runner is, and the local one.

Here a command is started, watched by a witness, its content stored, its events folded.
Nothing here asks questions of the graph, prints, or knows Kubernetes. The command line and
the Python API may import it.

    executing    one command, from its start to its record
    event_builder the events of an execution, from its trace
    recovering   completes the records of executions whose recorder was killed
    locks        whether an execution is still running
"""
