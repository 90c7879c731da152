"""Run work on this machine and record it.

Contains the recorder of one command, sessions that run many tasks in one process, and the
recovery of executions whose recorder was killed. Never queries lineage, never prints, and knows
nothing about Kubernetes or pipelines. Imported by the packages above.

    recorder           one command, from its start to its record (`recording_result`)
    recovery           completes the records of executions whose recorder was killed
    nested_exec        `clew exec` inside another execution
    spool_directories  where executions spool their traces, and which of them still run
    trace_follower     stores the files that a trace names, while it grows
    execution_events   the events of the recorder itself: start, output, end
    graph_access, record_errors      a database that does not answer, and other faults
    launch             starts a command under the tracer
    session            one process that forks a child for each task
    stdio              captures the standard streams
    malloc_trim        returns free memory to the system
"""
