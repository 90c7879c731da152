"""Run work on this machine and record it.

Contains the recorder of one command, sessions that run many tasks in one process, and the
recovery of executions whose recorder was killed. Never queries lineage, never prints, and knows
nothing about Kubernetes or pipelines. Imported by the packages above.

    recorder         one command, from its start to its record
    recovery         completes the records of executions whose recorder was killed
    spool_directories  where executions spool their traces, and which of them still run
    launch           starts a command under the tracer
    session          one process that forks a child for each task
    stdio            captures the standard streams
"""
